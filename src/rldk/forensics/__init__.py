"""The judgement of a run: trackers, detectors, scores and incidents."""
