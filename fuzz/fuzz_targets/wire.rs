//! Any bytes give lines, requests and replies that hold what they promise.
#![no_main]

use libfuzzer_sys::fuzz_target;
use strongroom::wire::{self, LineReader, Reply, WireError};

fuzz_target!(|input: &[u8]| {
    const BYTES_MAX: usize = 256;
    for line in LineReader::new(input, BYTES_MAX) {
        let request = line.expect("a slice can be read").request();
        let id = request.tool_use_id.as_deref();
        assert!(id.is_none_or(|id| id.bytes().all(|byte| byte.is_ascii_graphic())));

        // The reply is one line of JSON, so it is read back as a block of the wrong type.
        let reply = match &request.command {
            Ok(command) => Reply::text(format!("{command:?}")),
            Err(error) => Reply::from(error),
        };
        let result = reply.to_tool_result(id);
        assert!(!result.contains('\n'));
        let back = wire::parse(result.as_bytes());
        assert_eq!(back.command, Err(WireError::BlockType));
    }
    // Without the cap, too.
    let _ = wire::parse(input);
});
