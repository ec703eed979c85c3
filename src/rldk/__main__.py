"""`python -m rldk` is the command `rldk`."""

import sys

from rldk.cli.main import main

sys.exit(main())
