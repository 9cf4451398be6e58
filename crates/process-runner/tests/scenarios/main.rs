//! The hostile scenarios that a process runner meets, and the exact result that each must have.
//!
//! Each has a number, and each that can be run here is a test of its own on both kinds of runtime:
//! `s06_...::current_thread` and `s06_...::multi_thread`. Before and after each, descriptors, zombies and
//! survivors of this process are compared (see [`harness`]). Upper bounds of time leave room for a loaded
//! machine; the processes that must be ended would live much longer.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "the tests look at what the runs did, with other means")]
#![allow(clippy::print_stderr, reason = "what a failing test says")]
#![cfg(target_os = "linux")]
#![recursion_limit = "256"]

mod fuse;
mod hanging;
mod harness;
mod inheriting;
mod interleaving;
mod limits;
mod pipes;
mod scale;
mod starting;
mod time;
mod truth;

use std::path::Path;

/// How often a scenario repeats what must hold every time: `few` times here, `many` in the target `stress`.
const fn rounds<T: Copy>(few: T, _many: T) -> T {
    few
}

/// The coverage of one scenario: the test of it, or the reason that there is none.
enum ScenarioCoverage {
    Tested(&'static str),
    /// The name of a file beside this folder, and of a test in it.
    TestedIn(&'static str, &'static str),
    NotRun(&'static str),
}

/// `NUMBER => module::test;`, with `+ big_parent` to run it also with 1 GiB of touched memory,
/// `NUMBER => tested_in("file", test);` for one that needs another harness, or `NUMBER => not_run("why");`.
macro_rules! scenarios {
    (@row $rows:ident $number:literal => tested_in($file:literal, $name:ident); $($rest:tt)*) => {
        $rows.push(($number, ScenarioCoverage::TestedIn($file, stringify!($name))));
        scenarios!(@row $rows $($rest)*);
    };
    (@test $number:literal => tested_in($file:literal, $name:ident); $($rest:tt)*) => {
        scenarios!(@test $($rest)*);
    };
    (@row $rows:ident $number:literal => not_run($why:literal); $($rest:tt)*) => {
        $rows.push(($number, ScenarioCoverage::NotRun($why)));
        scenarios!(@row $rows $($rest)*);
    };
    (@row $rows:ident $number:literal => $module:ident :: $name:ident $(+ $variant:ident)?; $($rest:tt)*) => {
        $rows.push(($number, ScenarioCoverage::Tested(stringify!($name))));
        scenarios!(@row $rows $($rest)*);
    };
    (@row $rows:ident) => {};
    (@test $number:literal => not_run($why:literal); $($rest:tt)*) => {
        scenarios!(@test $($rest)*);
    };
    (@test $number:literal => $module:ident :: $name:ident $(+ $variant:ident)?; $($rest:tt)*) => {
        mod $name {
            #[test]
            fn current_thread() {
                crate::harness::current_thread(concat!(stringify!($name), "::current_thread"), crate::$module::$name);
            }
            #[test]
            fn multi_thread() {
                crate::harness::multi_thread(concat!(stringify!($name), "::multi_thread"), crate::$module::$name);
            }
            $(#[test]
            fn $variant() {
                crate::harness::$variant(concat!(stringify!($name), "::", stringify!($variant)), crate::$module::$name);
            })?
        }
        scenarios!(@test $($rest)*);
    };
    (@test) => {};
    ($($table:tt)*) => {
        fn fill(rows: &mut Vec<(u32, ScenarioCoverage)>) {
            scenarios!(@row rows $($table)*);
        }
        scenarios!(@test $($table)*);
    };
}

scenarios! {
    // Pipes and deadlock
    1 => pipes::s01_a_flood_on_one_stream_costs_no_memory;
    2 => pipes::s02_both_streams_in_turn_are_complete;
    3 => pipes::s03_merged_streams_keep_the_order_of_writes;
    4 => pipes::s04_a_stream_closed_early_ends_nothing_and_costs_nothing;
    5 => pipes::s05_both_streams_closed_are_no_exit;
    6 => pipes::s06_a_silent_holder_of_a_pipe_is_ended_after_the_idle_clock;
    7 => pipes::s07_a_trickling_holder_is_ended_after_the_absolute_clock;
    8 => pipes::s08_output_after_the_exit_is_kept_to_its_end;
    9 => pipes::s09_a_holder_is_left_alone_if_asked;
    10 => pipes::s10_process_substitution_gives_all_its_output;
    11 => pipes::s11_a_stranger_that_holds_the_pipe_delays_no_longer_than_the_clocks;
    12 => pipes::s12_input_and_output_of_64_mib_do_not_deadlock;
    13 => pipes::s13_input_that_nobody_reads_is_reported_at_the_timeout;
    14 => pipes::s14_input_that_is_refused_is_no_error;
    15 => pipes::s15_input_is_dev_null_by_default;
    16 => pipes::s16_waiting_closes_the_input;
    17 => pipes::s17_a_reader_that_never_yields_does_not_hold_the_run;
    18 => pipes::s18_a_consumer_that_goes_away_kills_nobody;
    // Limits and memory
    19 => limits::s19_a_gibibyte_without_a_line_end_costs_no_memory;
    20 => limits::s20_a_line_of_100_mib_is_one_cut_line_and_the_next_is_intact;
    21 => limits::s21_four_million_lines_come_in_order;
    22 => limits::s22_a_consumer_that_stalls_loses_events_or_holds_the_program_and_never_the_capture;
    23 => limits::s23_an_output_limit_kills_the_tree;
    24 => limits::s24_a_spill_holds_what_its_limit_allows_and_harms_nobody;
    25 => limits::s25_bytes_that_are_no_text_are_exact;
    26 => limits::s26_no_character_is_split;
    27 => limits::s27_control_characters_are_kept_as_bytes_and_cleaned_as_text;
    28 => limits::s28_500_runs_at_once_stay_within_their_memory_and_descriptors;
    // Time, kill, cancel
    29 => time::s29_a_timeout_ends_a_program_politely + big_parent;
    30 => time::s30_a_program_that_ignores_sigterm_is_killed + big_parent;
    31 => time::s31_a_program_that_ends_in_time_has_still_timed_out + big_parent;
    32 => time::s32_a_stopped_program_is_ended + big_parent;
    33 => time::s33_a_stop_is_not_an_exit + big_parent;
    34 => time::s34_a_daemon_that_holds_a_pipe_dies_at_the_timeout + big_parent;
    35 => time::s35_a_quiet_daemon_lives_after_an_exit_and_dies_at_a_timeout + big_parent;
    36 => time::s36_a_job_in_its_own_group_dies_at_the_timeout + big_parent;
    37 => time::s37_a_bomb_that_respawns_on_sigterm_is_defused + big_parent;
    38 => time::s38_an_escapee_without_environment_is_admitted_in_the_containment;
    39 => time::s39_a_process_of_another_user_is_unkillable_and_hangs_nobody;
    40 => hanging::s40_a_process_in_the_d_state_is_unkillable_and_hangs_nobody;
    41 => hanging::s41_a_start_on_a_hung_file_system_is_given_up_and_hangs_nobody;
    42 => time::s42_what_is_over_before_it_begins_is_not_started;
    43 => time::s43_a_cancel_is_obeyed_in_every_phase + big_parent;
    44 => time::s44_exit_and_timeout_at_once_give_one_of_them_with_all_output;
    45 => time::s45_a_dropped_future_ends_the_tree_without_blocking + big_parent;
    46 => time::s46_a_dropped_runtime_ends_its_runs + big_parent;
    47 => time::s47_a_shutdown_ends_all_runs_at_once;
    48 => time::s48_a_panic_in_a_callback_ends_the_run_and_goes_on_at_the_caller;
    49 => tested_in("guardian.rs", a_killed_server_takes_its_runs_with_it);
    50 => time::s50_the_idle_clock_starts_again_with_each_output;
    51 => time::s51_only_the_monotonic_clock_is_read;
    // Scale
    52 => scale::s52_thousands_of_short_runs_leave_nothing_behind;
    53 => scale::s53_500_programs_that_end_one_by_one_are_all_seen;
    54 => scale::s54_a_bound_on_runs_holds_and_is_first_come_first_served;
    55 => scale::s55_without_descriptors_nothing_starts_and_nothing_leaks;
    56 => scale::s56_without_processes_the_start_is_tried_again_and_then_refused;
    57 => scale::s57_a_status_that_another_part_takes_is_unknown_and_hangs_nobody;
    58 => scale::s58_without_pidfd_everything_holds;
    59 => scale::s59_the_zombies_of_others_are_left_alone;
    // Starting
    60 => starting::s60_a_missing_program_is_not_found_and_the_folders_are_named;
    61 => starting::s61_a_file_without_permission_and_a_folder_are_told_apart;
    62 => starting::s62_a_missing_interpreter_is_named;
    63 => starting::s63_the_folder_is_the_culprit_if_it_is;
    64 => starting::s64_a_file_of_no_known_format_is_not_given_to_a_shell;
    65 => starting::s65_a_nul_byte_is_found_before_anything_is_opened;
    66 => starting::s66_a_bad_variable_name_is_refused;
    67 => starting::s67_an_argument_that_is_too_long_is_named;
    68 => starting::s68_a_program_that_is_being_written_is_tried_again;
    69 => starting::s69_a_relative_program_is_relative_to_the_folder;
    70 => not_run("Windows: PATHEXT and batch files");
    71 => not_run("Windows: job objects");
    // What the child inherits
    72 => inheriting::s72_a_child_has_three_descriptors;
    73 => inheriting::s73_a_child_has_an_empty_signal_mask;
    74 => inheriting::s74_a_child_ignores_no_signal;
    75 => inheriting::s75_a_child_leads_a_session_without_a_terminal;
    76 => inheriting::s76_an_interrupt_at_the_terminal_is_ours_alone;
    77 => inheriting::s77_the_environment_is_what_was_asked_and_the_rest_is_inherited;
    78 => inheriting::s78_git_fails_instead_of_asking;
    // Truth of the result
    79 => truth::s79_signals_and_codes_are_not_mixed_up;
    80 => not_run("Windows: exit codes of 32 bits");
    81 => truth::s81_both_durations_are_given;
    82 => truth::s82_the_use_of_cpu_is_the_programs_and_its_memory_is_not_ours;
    83 => truth::s83_a_secret_is_never_seen;
    84 => truth::s84_hiding_in_a_gibibyte_costs_no_memory;
    85 => truth::s85_debug_and_error_texts_hold_no_values;
    86 => truth::s86_an_output_in_json_comes_back_the_same;
}

#[test]
fn every_number_from_1_to_86_is_in_the_table_once_and_its_test_has_that_number() {
    let mut table = Vec::new();
    fill(&mut table);
    let numbers: Vec<u32> = table.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=86).collect::<Vec<_>>());
    for (number, row) in table {
        match row {
            ScenarioCoverage::Tested(name) => {
                assert!(name.starts_with(&format!("s{number:02}_")), "{number}: {name}");
            }
            ScenarioCoverage::TestedIn(file, name) => {
                let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file);
                let text = std::fs::read_to_string(path).expect("the file is there");
                assert!(text.contains(&format!("fn {name}(")), "{number}: no {name} in {file}");
            }
            ScenarioCoverage::NotRun(why) => eprintln!("{number} is not run: {why}"),
        }
    }
}
