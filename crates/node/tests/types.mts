// What a user writes in TypeScript; only its types are checked.
import Anthropic from '@anthropic-ai/sdk';
import { betaMemoryTool } from '@anthropic-ai/sdk/helpers/beta/memory';
import { Store, type Answer } from 'strongroom';
import { StrongroomMemory } from 'strongroom/anthropic';

export async function agent(user: string): Promise<Answer> {
  const memory = await StrongroomMemory.open('./store', { tenant: `clinic/${user}`, keyFile: 'store.key' });
  const client = new Anthropic();
  await client.beta.messages.toolRunner({
    model: 'claude-sonnet-5-5',
    max_tokens: 1024,
    messages: [{ role: 'user', content: 'Hello' }],
    tools: [betaMemoryTool(memory.handlers)],
  });
  const store: Store = memory.store;
  return store.tenant('a', { actor: 'b' }).execute({ command: 'view', path: '/memories' });
}
