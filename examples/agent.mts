// An agent whose memory is a strongroom store, with the SDK's tool runner.
//
//   npm install ./crates/node @anthropic-ai/sdk
//   export ANTHROPIC_API_KEY=...
//   node examples/agent.mts --user ada "What do you remember of me?"      (Node.js 22.18 or newer)
//
// Long sessions: by default the API clears old tool results (`clear_tool_uses_20250919`) once
// there is much context; with --compact it puts a summary in the place of old turns instead.
// Either way what the model wrote into its memory stays, so it can look it up again.
import { parseArgs } from 'node:util';

import Anthropic from '@anthropic-ai/sdk';
import { betaMemoryTool } from '@anthropic-ai/sdk/helpers/beta/memory';
import { StrongroomMemory } from 'strongroom/anthropic';

const clearToolUses = {
  betas: ['context-management-2025-06-27'],
  context_management: {
    edits: [
      {
        type: 'clear_tool_uses_20250919' as const,
        trigger: { type: 'input_tokens' as const, value: 50_000 },
        keep: { type: 'tool_uses' as const, value: 5 },
      },
    ],
  },
};

const compact = {
  betas: ['compact-2026-01-12'],
  context_management: {
    edits: [{ type: 'compact_20260112' as const, trigger: { type: 'input_tokens' as const, value: 100_000 } }],
  },
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    user: { type: 'string' },
    store: { type: 'string', default: './memory' },
    'key-file': { type: 'string', default: './memory.key' },
    model: { type: 'string', default: 'claude-sonnet-5-5' },
    compact: { type: 'boolean', default: false },
  },
});
if (!values.user || !positionals[0]) throw new Error('usage: agent.mts --user NAME [--compact] PROMPT');

// The tenant comes from who is logged in, never from what the model or the user wrote.
const memory = await StrongroomMemory.open(values.store, {
  tenant: `clinic/${values.user}`,
  keyFile: values['key-file'],
  create: true,
  actor: 'agent.mts',
});
try {
  const last = await new Anthropic().beta.messages.toolRunner({
    model: values.model,
    max_tokens: 4096,
    messages: [{ role: 'user', content: positionals[0] }],
    tools: [betaMemoryTool(memory.handlers)],
    ...(values.compact ? compact : clearToolUses),
  });
  for (const block of last.content) if (block.type === 'text') console.log(block.text);
} finally {
  await memory.close();
}
