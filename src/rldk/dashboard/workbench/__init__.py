"""What the table of runs shows: rows from the index or from logs that are followed, curves of many runs, comparisons, notes.

It runs in a process of its own (`process.py`), so that judging many logs does not delay the page of one run.
"""
