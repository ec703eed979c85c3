"""Anomalies that belong together, where they began, and what probably caused them."""
