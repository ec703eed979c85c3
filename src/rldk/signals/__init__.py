"""What is measured of a run, once: detectors, scores and trackers read it here."""
