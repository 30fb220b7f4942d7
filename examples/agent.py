"""An agent whose memory is a strongroom store, with the SDK's tool runner.

    pip install ./crates/python 'anthropic>=2.14'
    export ANTHROPIC_API_KEY=...
    python3 examples/agent.py --user ada "What do you remember of me?"

Long sessions: by default the API clears old tool results (`clear_tool_uses_20250919`) once there
is much context; with --compact it puts a summary in the place of old turns instead. Either way
what the model wrote into its memory stays, so it can look it up again.
"""

import argparse
from typing import Any

from anthropic import Anthropic

from strongroom import StrongroomMemoryTool

CLEAR_TOOL_USES: Any = {
    "betas": ["context-management-2025-06-27"],
    "context_management": {
        "edits": [
            {
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "input_tokens", "value": 50_000},
                "keep": {"type": "tool_uses", "value": 5},
                # What was read from memory is worth more than what can be looked up elsewhere;
                # without this, old views of files go too, and the model reads them again.
                # "exclude_tools": ["memory"],
            }
        ]
    },
}

COMPACT: Any = {
    "betas": ["compact-2026-01-12"],
    "context_management": {
        "edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 100_000}}]
    },
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("prompt")
    parser.add_argument("--user", required=True, help="the end user: each has a tenant of their own")
    parser.add_argument("--store", default="./memory")
    parser.add_argument("--key-file", default="./memory.key")
    parser.add_argument("--model", default="claude-sonnet-5-5")
    parser.add_argument("--compact", action="store_true")
    args = parser.parse_args()

    # The tenant comes from who is logged in, never from what the model or the user wrote.
    memory = StrongroomMemoryTool(
        args.store, tenant=f"clinic/{args.user}", key_file=args.key_file, create=True, actor="agent.py"
    )
    with memory:
        runner = Anthropic().beta.messages.tool_runner(
            model=args.model,
            max_tokens=4096,
            messages=[{"role": "user", "content": args.prompt}],
            tools=[memory],
            **(COMPACT if args.compact else CLEAR_TOOL_USES),
        )
        for block in runner.until_done().content:
            if block.type == "text":
                print(block.text)


if __name__ == "__main__":
    main()
