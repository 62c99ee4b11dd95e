"""A scenario of typed tables: type checkers read this file, and a test runs it."""

from plimsoll import schema

SCENARIO = schema.ScenarioTable(
    version=1,
    title="small",
    run=schema.Run(duration="200ms", warmup="20ms"),
    topology=schema.RackTopology(kind="rack", hosts=4, rate="1Gbps", delay="5us"),
    port={"switch": schema.Port(buffer="100 packets")},
    workload={
        "small": schema.RpcWorkload(kind="rpc", request="100B", response="900B", load="8Mbps"),
        "background": schema.TransferWorkload(kind="transfer", size="1MB", load=0.3),
    },
    variant={
        "TCP": schema.Variant(transport=schema.TransportParamsPartial(kind="tcp")),
        "DCTCP": schema.Variant(
            transport={"kind": "dctcp"},
            port={"switch": schema.PortPartial(ecn=schema.EcnParamsPartial(threshold="20 packets"))},
        ),
    },
    observe=schema.Observe(queue={"client": schema.ObserveQueue(port="client", every="1ms")}),
)
