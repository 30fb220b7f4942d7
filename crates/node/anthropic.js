'use strict';
const file = require('./sdk.js')('lib/tools/ToolError');
const { ToolError } = require(file ?? '@anthropic-ai/sdk/lib/tools/ToolError');
module.exports = { StrongroomMemory: require('./handlers.js')(ToolError) };
