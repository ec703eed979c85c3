"""Print a script that completes rldk's commands and options in bash, zsh or fish."""

from __future__ import annotations

import argparse
import importlib

EXAMPLES = """
rldk completion bash > ~/.local/share/bash-completion/completions/rldk
rldk completion zsh >> ~/.zshrc
rldk completion fish > ~/.config/fish/completions/rldk.fish
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="your shell")


def run(args: argparse.Namespace) -> int:
    import sys

    sys.stdout.write({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell]())
    return 0


def _commands() -> dict[str, tuple[str, list[argparse.Action]]]:
    """Every command with its summary and its options, from the parsers themselves."""
    from rldk.cli.main import COMMANDS

    found = {}
    for name, summary in COMMANDS.items():
        parser = argparse.ArgumentParser(prog=name)
        importlib.import_module(f"rldk.cli.commands.{name}").configure(parser)
        found[name] = (summary, parser._actions)
    return found


def _bash() -> str:
    commands = _commands()
    cases = []
    for name, (_, actions) in commands.items():
        words = " ".join(option for action in actions for option in action.option_strings)
        choices = [str(choice) for action in actions if not action.option_strings for choice in action.choices or ()]
        cases.append(f'    {name}) words="{" ".join([words, *choices])}" ;;')
        for action in (action for action in actions if action.option_strings and action.choices):
            flag = action.option_strings[-1]
            cases.append(f'    {name}:{flag}) words="{" ".join(map(str, action.choices or ()))}" ;;')
    inner = "\n".join(cases)
    return f"""# completion of rldk for bash
_rldk() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" command="" word words=""
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$word" in {"|".join(commands)}) command="$word"; break ;; esac
  done
  if [ -z "$command" ]; then
    COMPREPLY=($(compgen -W "{" ".join(commands)} --help --version" -- "$current")); return
  fi
  _rldk_words() {{ case "$1" in
{inner}
    esac; }}
  _rldk_words "$command:$previous"
  if [ -n "$words" ]; then COMPREPLY=($(compgen -W "$words" -- "$current")); return; fi
  _rldk_words "$command"
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  case "$current" in -*) ;; *) COMPREPLY+=($(compgen -f -- "$current")) ;; esac
}}
complete -o filenames -F _rldk rldk
"""


def _zsh() -> str:
    commands = _commands()
    named = "\n".join(f"    {_quoted_zsh(f'{name}:{summary}')}" for name, (summary, _) in commands.items())
    cases = "\n".join(f"    {name}) _arguments -S {' '.join(_zsh_specs(actions))} ;;" for name, (_, actions) in commands.items())
    return f"""#compdef rldk
# completion of rldk for zsh
(( $+functions[compdef] )) || {{ autoload -U compinit && compinit }}
_rldk() {{
  local -a commands
  commands=(
{named}
  )
  if (( CURRENT == 2 )); then _describe command commands; return; fi
  local command="$words[2]"
  shift words
  (( CURRENT-- ))
  case "$command" in
{cases}
  esac
}}
compdef _rldk rldk
"""


def _zsh_specs(actions: list[argparse.Action]) -> list[str]:
    """What `_arguments` needs to know about the options and arguments of a command."""
    specs = []
    for action in actions:
        values = f"({' '.join(map(str, action.choices))})" if action.choices else "_files"
        about = "".join(f"\\{letter}" if letter in "[]:\\" else letter for letter in _about(action))
        takes = f":{(action.metavar or action.dest)!s}:{values}" if action.nargs != 0 else ""
        for option in action.option_strings:
            specs.append(_quoted_zsh(f"*{option}[{about}]{takes}"))
    choices = [action.choices for action in actions if not action.option_strings and action.choices]
    place = f"1:value:({' '.join(map(str, choices[0]))})" if choices else "*:file:_files"
    return [*specs, _quoted_zsh(place)]


def _fish() -> str:
    lines = ["# completion of rldk for fish"]
    for name, (summary, actions) in _commands().items():
        lines.append(f"complete -c rldk -n __fish_use_subcommand -f -a {name} -d {_quoted(summary)}")
        seen = f"complete -c rldk -n '__fish_seen_subcommand_from {name}'"
        for action in actions:
            values = _quoted(" ".join(map(str, action.choices))) if action.choices else ""
            if not action.option_strings:
                lines += [f"{seen} -f -a {values}"] if values else []
                continue
            option = action.option_strings[-1]
            flag = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            takes = f" -x -a {values}" if values else " -r" if action.nargs != 0 else ""
            lines.append(f"{seen} {flag}{takes} -d {_quoted(_about(action))}")
    return "\n".join(lines) + "\n"


def _about(action: argparse.Action) -> str:
    """The first part of an option's help, in one line."""
    return " ".join((action.help or "").split(";")[0].split())[:80]


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _quoted_zsh(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
