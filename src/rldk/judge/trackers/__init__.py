"""What is measured for the scores: KL and its schedule, gradient norms, advantages, length bias."""
