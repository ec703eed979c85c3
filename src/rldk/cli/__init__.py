"""The command line of rldk."""
