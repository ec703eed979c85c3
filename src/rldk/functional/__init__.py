"""The formulas of training and of its measures, each written once: pure functions over tensors, and plain numbers."""
