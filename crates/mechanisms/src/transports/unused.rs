//! [`unused_keys`]: the keys of RoCE and Ultra Ethernet that have no effect in a transport, whatever their values.

use super::roce::controller::{DcqcnForm, TimelyForm};
use super::roce::{RoceOperation, RoceRepair};
use super::{Carrier, Kind};
use crate::tcp::TransportParams;

/// A key of a transport's table that has no effect in it, or a table of which no key has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnusedKey {
    /// The key within `[transport]`, dotted.
    pub key: &'static str,
    /// The setting that would give it an effect: `kind = "hpcc"`.
    pub needs: &'static str,
}

/// Returns the keys that have no effect in `transport`: those of controllers that it does not have, of the other
/// repair, and of the other form of a controller.
pub fn unused_keys(transport: &TransportParams) -> Vec<UnusedKey> {
    use Kind::{
        Cubic, Dcqcn, Dctcp, Homa, Hpcc, Ndp, Powertcp, RoceDctcp, RoceSwift, Swift, ThetaPowertcp, Timely,
        Uet, UetNscc, UetRccc,
    };
    let has = |kinds: &[Kind]| transport.kinds().any(|kind| kinds.contains(&kind));
    let roce = &transport.roce;
    let is_roce = transport.kinds().any(|kind| kind.describe().family.carrier == Carrier::Roce);
    let is_uet = has(&[Uet, UetNscc, UetRccc]);
    let mut rules = vec![
        ("dctcp", has(&[Dctcp, RoceDctcp]), "kind = \"dctcp\" or \"roce-dctcp\""),
        ("swift", has(&[Swift, RoceSwift]), "kind = \"swift\" or \"roce-swift\""),
        ("cubic", has(&[Cubic]), "kind = \"cubic\""),
        ("roce", is_roce, "a controller of RoCE for `kind`"),
        ("uet", is_uet, "kind = \"uet\", \"uet-nscc\" or \"uet-rccc\""),
        ("ndp", has(&[Ndp]), "kind = \"ndp\""),
        ("homa", has(&[Homa]), "kind = \"homa\""),
    ];
    if is_uet {
        rules.extend([
            ("uet.nscc", has(&[Uet, UetNscc]), "kind = \"uet\" or \"uet-nscc\""),
            ("uet.rccc", has(&[Uet, UetRccc]), "kind = \"uet\" or \"uet-rccc\""),
        ]);
    }
    if is_roce {
        let is_selective = roce.repair == RoceRepair::Selective;
        let form = roce.dcqcn.form;
        let of_form = |wanted| !has(&[Dcqcn]) || form == wanted;
        rules.extend([
            ("roce.dcqcn", has(&[Dcqcn]), "kind = \"dcqcn\""),
            ("roce.hpcc", has(&[Hpcc]), "kind = \"hpcc\""),
            ("roce.timely", has(&[Timely]), "kind = \"timely\""),
            ("roce.powertcp", has(&[Powertcp, ThetaPowertcp]), "kind = \"powertcp\" or \"theta-powertcp\""),
            ("roce.dctcp", has(&[RoceDctcp]), "kind = \"roce-dctcp\""),
            ("roce.cnp_interval", has(&[Dcqcn]), "kind = \"dcqcn\""),
            ("roce.cnp_generation_delay", has(&[Dcqcn]), "kind = \"dcqcn\""),
            ("roce.cnp_delay", has(&[Dcqcn]), "kind = \"dcqcn\""),
            (
                "roce.window",
                has(&[Dcqcn, Timely, RoceDctcp]),
                "kind = \"dcqcn\", \"timely\" or \"roce-dctcp\": the others have windows of their own",
            ),
            ("roce.selective", is_selective, "roce.repair = \"selective\""),
            ("roce.timeout", !is_selective, "roce.repair = \"go-back-n\""),
            ("roce.dcqcn.byte_counter", of_form(DcqcnForm::Paper), "roce.dcqcn.form = \"paper\""),
            ("roce.dcqcn.cut_period", of_form(DcqcnForm::Nic), "roce.dcqcn.form = \"nic\""),
            ("roce.dcqcn.clamp_target", of_form(DcqcnForm::Nic), "roce.dcqcn.form = \"nic\""),
            (
                "roce.timely.patched_beta",
                !has(&[Timely]) || roce.timely.form == TimelyForm::Patched,
                "roce.timely.form = \"patched\"",
            ),
            ("roce.nic.turn", roce.nic.active.is_some(), "roce.nic.active"),
            (
                "roce.nic.outstanding_reads",
                roce.operation == RoceOperation::Read,
                "roce.operation = \"read\"",
            ),
        ]);
    }
    if transport.kinds().all(|kind| kind.describe().family.carrier.is_nic()) {
        // What a kernel's TCP has, and a NIC does not.
        let has_window = has(&[RoceSwift]);
        rules.push(("max_window", has_window, "a kind of TCP, or \"roce-swift\""));
        rules.extend(OF_STACKS.iter().map(|key| (*key, false, "a kind of TCP")));
    }
    let unused = rules.into_iter().filter(|(_, is_used, _)| !is_used);
    unused.map(|(key, _, needs)| UnusedKey { key, needs }).collect()
}

/// Keys of `[transport]` that transports of NICs have no use for.
const OF_STACKS: &[&str] = &[
    "recovery",
    "growth",
    "count_options",
    "initial_window",
    "min_window",
    "min_ssthresh",
    "initial_ssthresh",
    "window_unit",
    "cut_from",
    "app_limited_growth",
    "idle_restart",
    "restart_on_write",
    "pacing_rate",
    "min_rto",
    "initial_rto",
    "max_rto",
    "rto_granularity",
    "rtt_sampling",
    "rtt_error",
    "backoff_reset",
    "syn_loss_rto",
    "dup_ack_threshold",
    "sacked_in_window",
    "probe_after",
    "fast_retransmit_guard",
    "limited_transmit",
    "loss_after_ecn",
    "ack_every",
    "ack_delay",
    "nagle",
    "handshake",
    "pool",
    "ecn",
    "ecn_on_acks",
    "echo_marked_acks",
    "ece_growth",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn unused(text: &str) -> String {
        let params: TransportParams = toml::from_str(text).unwrap();
        let keys = unused_keys(&params);
        let keys = keys.iter().map(|unused| unused.key).filter(|key| !OF_STACKS.contains(key));
        keys.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_key_is_of_stacks_alone_or_of_nics_as_well() {
        let schema = schemars::schema_for!(TransportParams).to_value();
        let keys: Vec<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let of_both = [
            "kind",
            "connections",
            "priority",
            "segment",
            "header",
            "max_window",
            "dctcp",
            "cubic",
            "swift",
            "roce",
            "uet",
            "ndp",
            "homa",
            "workload",
            "mptcp",
        ];
        for key in &keys {
            assert!(
                OF_STACKS.contains(key) != of_both.contains(key),
                "{key}: which transports have a use for it?"
            );
        }
        assert!(OF_STACKS.iter().all(|key| keys.contains(key)), "{keys:?}");
    }

    #[test]
    fn keys_of_stacks_have_no_effect_on_nics() {
        let count = |text: &str| {
            let unused = unused_keys(&toml::from_str(text).unwrap());
            unused.iter().filter(|unused| OF_STACKS.contains(&unused.key)).count()
        };
        for kind in ["dcqcn", "roce-swift", "uet", "ndp", "homa"] {
            assert_eq!(count(&format!("kind = '{kind}'")), OF_STACKS.len(), "{kind}");
        }
        for others in ["kind = 'tcp'", "kind = 'datagram'", "kind = 'uet'\nworkload.other = 'tcp'"] {
            assert_eq!(count(others), 0, "{others}");
        }
        assert!(unused("kind = 'uet'").contains("max_window"));
        assert!(!unused("kind = 'roce-swift'").contains("max_window"));
    }

    #[test]
    fn keys_of_other_controllers_repairs_and_forms_have_no_effect() {
        assert_eq!(unused("kind = 'dctcp'"), "swift cubic roce uet ndp homa");
        assert_eq!(
            unused("kind = 'dcqcn'"),
            "dctcp swift cubic uet ndp homa roce.hpcc roce.timely roce.powertcp roce.dctcp roce.selective \
             roce.dcqcn.byte_counter roce.nic.turn roce.nic.outstanding_reads max_window"
        );
        assert_eq!(
            unused(
                "kind = 'timely'\nworkload.other = 'roce-dctcp'\n\
                 roce = { repair = 'selective', operation = 'read', nic.active = 3 }"
            ),
            "swift cubic uet ndp homa roce.dcqcn roce.hpcc roce.powertcp roce.cnp_interval roce.cnp_generation_delay \
             roce.cnp_delay roce.timeout roce.timely.patched_beta max_window"
        );
        assert!(unused("kind = 'hpcc'").contains("roce.window"));
        let paper = unused("kind = 'dcqcn'\nroce.dcqcn.form = 'paper'");
        assert!(paper.contains("cut_period roce.dcqcn.clamp_target") && !paper.contains("byte_counter"));
    }
}
