"""Anomalies that belong together, where they started, and what probably caused them."""
