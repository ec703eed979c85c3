"""Mix the sources of a data config into the file that a stage trains on.

    python trainer/prepare_data.py --config config/data/posttrain/rlaif/ppo.yaml
    python trainer/prepare_data.py --all        # every config under config/data/

The same config and the same files give the same output. A report of how many records each source gave, and which were left out
and why, is printed and written next to the file.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from data_config import DataError, read_config
from data_mix import mix, write_prepared


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--config", type=Path, nargs="+", help="data configs to prepare")
    which.add_argument("--all", action="store_true", help="prepare every data config under config/data/")
    parser.add_argument("--output", type=Path, help="write to this file instead of the one in the config")
    parser.add_argument("--seed", type=int, help="use this seed instead of the one in the config")
    args = parser.parse_args(arguments)
    configs = sorted(Path("config/data").rglob("*.yaml")) if args.all else args.config
    if args.output and len(configs) > 1:
        parser.error("--output needs a single --config")
    if not configs:
        parser.error("no data config under config/data/: run it from the project's root")
    try:
        for path in configs:
            config = read_config(path)
            if args.seed is not None:
                config = replace(config, seed=args.seed)
            mixture = mix(config)
            written = write_prepared(mixture, args.output)
            print(f"{mixture.table()}\n  written to {written}")
    except DataError as error:
        print(f"prepare_data: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
