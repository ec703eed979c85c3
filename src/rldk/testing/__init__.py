"""What a user needs to test detectors: simulated runs, healthy and sick."""
