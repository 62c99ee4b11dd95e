//! Compares a scheduler of one's own with Solstice, on demand of the paper's workload.

use plimsoll_circuits::{Demand, Scheduler, SchedulerKind, Switching, Workload, evaluate};
use plimsoll_examples::largest_first::LargestFirst;
use plimsoll_process::outln;
use plimsoll_units::{Rate, Span, Streams};

fn main() {
    let switching = Switching {
        circuit_rate: Rate::from_gbps(100),
        packet_rate: Rate::from_gbps(10),
        night: Span::from_us(20),
        window: Span::from_ms(3),
    };
    let mut stream = Streams::new(1).stream("circuits/demand/0");
    let demand = Workload::paper(32).draw(&switching, &mut stream);
    compare("largest first", &mut LargestFirst, &demand, &switching);
    compare("Solstice", SchedulerKind::Solstice.make().as_mut(), &demand, &switching);
}

fn compare(name: &str, scheduler: &mut dyn Scheduler, demand: &Demand, switching: &Switching) {
    let served = evaluate(scheduler, demand, switching);
    let time = served.time_to_serve.expect("both serve all");
    outln!("{name}: {:.2} ms, {} configurations", time.as_ms_f64(), served.configurations);
}
