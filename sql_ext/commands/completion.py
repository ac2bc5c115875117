"""``use-spark completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from sql_ext.commands.command_names import PROGRAM
from sql_ext.commands.options import examples

SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_USE_SPARK_COMPLETE"


def _completion(ctx: click.Context, /, shell: str) -> None:
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"{shell} is not one of {', '.join(SHELLS)}.", ctx)
    click.echo(kind(ctx.find_root().command, {}, PROGRAM, _VARIABLE).source())


COMMAND = click.Command(
    "completion",
    callback=click.pass_context(_completion),
    params=[click.Argument(["shell"], type=click.Choice(SHELLS))],
    help="Prints a shell script that completes commands and options.",
    epilog=examples(
        "use-spark completion bash > ~/.local/share/bash-completion/completions/use-spark",
        "use-spark completion zsh > ~/.zfunc/_use-spark",
        "use-spark completion fish > ~/.config/fish/completions/use-spark.fish",
    ),
)
