"""What all packages build on: the event, the metric catalogue, streaming statistics, errors. Needs numpy and msgspec at most."""
