//! Checks the sizes of the programs: the instructions that the verifier walked, and the instructions after translation.
//! Another version of the compiler or kernel may differ by a little; a larger difference is a change of the program,
//! which is to be reviewed and then recorded here.

use std::os::fd::AsFd as _;

use plimsoll_bpf::{
    ConnectionOptions, Connections, DatagramRedirect, DispatchOptions, Inputs, LimiterProgram, PacerFeedback,
    PacerProgram, PacketClassifier, PhantomQueueProgram, Program, ProgramSize, QueueLength, RedirectOptions,
    SteeringOptions,
};
use plimsoll_mechanisms::ecn::EcnParams;
use plimsoll_mechanisms::pacer::PacerParams;
use plimsoll_mechanisms::phantom_queue::PhantomQueueParams;
use plimsoll_mechanisms::qjump::{Excess, QjumpParams};
use plimsoll_units::{Bytes, Rate};

use crate::loaded;

/// The sizes as compiled by clang 14, on Linux 6.18.
const EXPECTED: &[(&str, ProgramSize)] = &[
    ("empty", ProgramSize { verified: 2, translated: 2 }),
    ("limiter", ProgramSize { verified: 467, translated: 302 }),
    ("limiter with DSCP", ProgramSize { verified: 658, translated: 341 }),
    ("connections", ProgramSize { verified: 363, translated: 292 }),
    ("level from DSCP", ProgramSize { verified: 28, translated: 21 }),
    ("phantom queue", ProgramSize { verified: 1040, translated: 238 }),
    ("pacer", ProgramSize { verified: 3_572, translated: 686 }),
    ("pacer's association", ProgramSize { verified: 157, translated: 159 }),
    ("datagrams to sockets", ProgramSize { verified: 108, translated: 91 }),
    // As walked by Linux 6.1, which is more than by 6.18.
    ("datagrams to the sockets of threads", ProgramSize { verified: 53_804, translated: 666 }),
];
/// The tolerance in per cent.
const TOLERANCE: usize = 25;

#[test]
fn the_programs_are_as_large_as_written_down() {
    if loaded(Program::empty()).is_none() {
        return;
    }
    let link = Rate::from_gbps(10);
    let levels = QjumpParams::default().resolve(12, link).unwrap();
    let limiter = |dscp| LimiterProgram::load(&levels, Excess::Refuse, dscp, Inputs::Kernel).unwrap();
    let phantom_queue =
        PhantomQueueProgram::load(&PhantomQueueParams::default(), link, Inputs::Kernel).unwrap();
    let pacer = PacerParams { min_rate: Some(Rate::from_mbps(100)), ..Default::default() };
    let (pacer, feedback) = (
        PacerProgram::load(&pacer, &[], Inputs::Kernel).unwrap(),
        PacerFeedback::load(
            &pacer,
            PacerProgram::load(&pacer, &[], Inputs::Kernel).unwrap().flows().unwrap().as_fd(),
            Inputs::Kernel,
        )
        .unwrap(),
    );
    let connections =
        ConnectionOptions { send_buffer: Some(4_096), share: Some((Bytes::new(9_000), levels.epoch)) };
    let connections = Connections::load(&connections).unwrap();
    let redirect = RedirectOptions::new([2; 6], vec!["192.0.2.1:11211".parse().unwrap()], 1);
    let dispatch = DispatchOptions {
        steering: SteeringOptions { seed: 7, factor: 9, by_vbucket: false },
        threads: 4,
        owners: vec![0; 64],
    };
    let dispatch = RedirectOptions { dispatch: Some(dispatch), ..redirect.clone() };
    let [redirect, dispatch] = [redirect, dispatch].map(|options| DatagramRedirect::load(&options).unwrap());
    let found = [
        Program::empty().unwrap().size().unwrap(),
        limiter(false).program().size().unwrap(),
        limiter(true).program().size().unwrap(),
        connections.program().size().unwrap(),
        PacketClassifier::load().unwrap().program().size().unwrap(),
        phantom_queue.program().size().unwrap(),
        pacer.program().size().unwrap(),
        feedback.program().size().unwrap(),
        redirect.program().size().unwrap(),
        dispatch.program().size().unwrap(),
    ];
    for ((name, expected), found) in EXPECTED.iter().zip(found) {
        assert_near(name, found, *expected);
    }
    let queue_length = QueueLength::load(&EcnParams::default(), Inputs::Kernel);
    if let Some(queue_length) = loaded(queue_length) {
        let expected = ProgramSize { verified: 56, translated: 47 };
        assert_near("queue length", queue_length.program().size().unwrap(), expected);
    }
}

/// Fails if `found` is outside the tolerance. A verifier may walk fewer instructions: that of Linux 6.1 walks 643 of
/// the phantom queue.
pub fn assert_near(name: &str, found: ProgramSize, expected: ProgramSize) {
    let above = |found: usize, expected: usize| found * 100 > expected * (100 + TOLERANCE);
    let below = found.translated * 100 < expected.translated * (100 - TOLERANCE);
    let ok =
        !above(found.verified, expected.verified) && !above(found.translated, expected.translated) && !below;
    assert!(ok, "{name}: {found:?}, written down is {expected:?}");
}

/// The program that reads the clock has no branch on the source of its inputs.
#[test]
fn what_is_off_is_not_in_the_program() {
    if loaded(Program::empty()).is_none() {
        return;
    }
    let levels = QjumpParams::default().resolve(12, Rate::from_gbps(10)).unwrap();
    let size = |dscp, inputs| {
        LimiterProgram::load(&levels, Excess::Refuse, dscp, inputs)
            .unwrap()
            .program()
            .size()
            .unwrap()
            .translated
    };
    assert!(size(false, Inputs::Kernel) + 20 < size(true, Inputs::Kernel));
    assert!(size(false, Inputs::Kernel).abs_diff(size(false, Inputs::Packet)) < 10);
}
