"""Many runs: judged in several processes or on a cluster, kept in an index, and looked at as a fleet."""
