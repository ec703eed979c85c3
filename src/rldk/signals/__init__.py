"""What is measured from a run, once, for detectors, scores and trackers alike."""
