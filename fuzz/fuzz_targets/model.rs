//! Whatever fails, a store answers and holds what its model does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use strongroom_fuzz::commands::Script;
use strongroom_fuzz::session;

fuzz_target!(|script: Script| {
    let _tally = session::run(&script);
});
