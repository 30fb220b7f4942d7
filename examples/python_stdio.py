"""An agent's memory from Python: `strongroom exec` as a child process. Standard library only.

    python3 examples/python_stdio.py ./memory ./memory.key

The command `strongroom` must be on the PATH. Store and key file are made if neither is there.
"""

import json
import subprocess
import sys

MEMORY_TOOL = {"type": "memory_20250818", "name": "memory"}  # for the request's `tools`


class Memory:
    """One tenant's memory. Calls are answered one after the other; use one per process."""

    def __init__(self, store, key_file, tenant):
        self.child = subprocess.Popen(
            ["strongroom", "exec", "--create", "--store", store, "--key-file", key_file, "--tenant", tenant],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
        )

    def run(self, tool_use):
        """The tool_result block for a tool_use block (or for its bare input)."""
        self.child.stdin.write(json.dumps(tool_use) + "\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            raise RuntimeError(f"strongroom ended with exit code {self.child.wait()}")
        return json.loads(line)

    def close(self):
        self.child.stdin.close()
        return self.child.wait()


if __name__ == "__main__":
    memory = Memory(sys.argv[1], sys.argv[2], tenant="acme/user-17")
    # In an agent these are the blocks of response.content whose type is "tool_use" and whose
    # name is "memory"; the results are the content of the next message, of role "user".
    blocks = [
        {"type": "tool_use", "id": "toolu_01", "name": "memory",
         "input": {"command": "create", "path": "/memories/tea.md", "file_text": "Likes tea\n"}},
        {"type": "tool_use", "id": "toolu_02", "name": "memory",
         "input": {"command": "view", "path": "/memories/tea.md"}},
    ]
    for block in blocks:
        print(json.dumps(memory.run(block)))
    sys.exit(memory.close())
