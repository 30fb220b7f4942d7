"""Runs tool inputs on the Python SDK's local memory tool and times each call.

One request a line: {"inputs": [...]}; one answer a line: {"nanos": [...], "failed": n}.
"""

import json
import sys
import time

import anthropic
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

tool = BetaLocalFilesystemMemoryTool(sys.argv[1])
print(json.dumps({"version": anthropic.__version__}), flush=True)
for line in sys.stdin:
    nanos, failed = [], 0
    for item in json.loads(line)["inputs"]:
        start = time.perf_counter_ns()
        try:
            tool.call(item)
        except Exception as error:  # noqa: BLE001
            failed += 1
            print(error, file=sys.stderr)
        nanos.append(time.perf_counter_ns() - start)
    print(json.dumps({"nanos": nanos, "failed": failed}), flush=True)
