"""Readers of logs, one framework a file; `rldk.adapters.table` lists them."""
