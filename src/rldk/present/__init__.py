"""What the terminal, the report, the dashboard and `rldk watch` share: words, colours, incidents, HTML and plots."""
