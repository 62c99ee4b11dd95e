// Runs one of the three benchmark scenarios in ns-3 and prints one JSON object. README.md says what
// the scenarios are, and how the work is held equal to that of another simulator.

#include "fabric.h"
#include "transport.h"

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>

#ifndef NS3_VERSION
#define NS3_VERSION "unknown"
#endif

using namespace ns3;

namespace
{

struct Options
{
    std::string scenario = "S1";
    std::string transport = "dctcp"; // S3 only; S1 is NewReno and S2 is DCTCP
    double duration = 0.2;           // s, from the end of the handshakes
    double warmup = 0;               // s
    uint64_t seed = 1;
    uint32_t k = 8;
    uint32_t sendBuffer = 0; // packets; 0: what the scenario says
    bool observe = true; // queue occupancy and retransmissions
    std::string flowsFile;
};

struct Scenario
{
    FabricParams fabric;
    TransportParams transport;
};

// Connections are made before the clock of the scenario starts, so that no SYN can meet a full
// queue: it would silence its flow for 3 s.
const Time HANDSHAKES = MilliSeconds(1);

[[noreturn]] void
Fail(const std::string& why)
{
    std::fprintf(stderr, "error: %s\n", why.c_str());
    std::exit(2);
}

Scenario
Define(const Options& options)
{
    const auto sendBuffer = [&options](uint32_t usual) {
        return options.sendBuffer > 0 ? options.sendBuffer : usual;
    };
    if (options.scenario == "S1" || options.scenario == "S2")
    {
        const bool dctcp = options.scenario == "S2";
        return {{1'000'000'000, MicroSeconds(5), 500, dctcp ? 30u : 0u, options.observe},
                {dctcp, 1000, 0, sendBuffer(1024)}};
    }
    if (options.scenario == "S3")
    {
        const bool dctcp = options.transport == "dctcp";
        return {{10'000'000'000, MicroSeconds(1), 100, dctcp ? 65u : 0u, options.observe},
                {dctcp, 1500, 200, sendBuffer(200)}};
    }
    Fail("--scenario must be S1, S2 or S3, not '" + options.scenario + "'");
}

std::vector<std::unique_ptr<Flow>>
IncastFlows(uint32_t senders)
{
    std::vector<std::unique_ptr<Flow>> flows;
    for (uint32_t i = 0; i < senders; ++i)
    {
        flows.push_back(std::make_unique<Flow>(i, senders, MicroSeconds(137) * i));
    }
    return flows;
}

// A random cyclic permutation (Sattolo's shuffle: every host sends to one other host and receives
// from one, never itself), and starts uniform over 100 us, from one splitmix64 stream.
std::vector<std::unique_ptr<Flow>>
PermutationFlows(uint32_t hosts, uint64_t seed)
{
    uint64_t counter = seed * 0x9e3779b97f4a7c15;
    const auto draw = [&counter] { return Mix64(counter += 0x9e3779b97f4a7c15); };
    std::vector<uint32_t> target(hosts);
    std::iota(target.begin(), target.end(), 0);
    for (uint32_t i = hosts - 1; i > 0; --i)
    {
        std::swap(target[i], target[draw() % i]);
    }
    std::vector<std::unique_ptr<Flow>> flows;
    for (uint32_t h = 0; h < hosts; ++h)
    {
        const Time start = PicoSeconds(int64_t(draw() % 100'000'000));
        flows.push_back(std::make_unique<Flow>(h, target[h], start));
    }
    return flows;
}

void
WriteFlows(const std::string& path, const std::vector<std::unique_ptr<Flow>>& flows)
{
    std::FILE* file = std::fopen(path.c_str(), "w");
    if (!file)
    {
        Fail("cannot write --flows file '" + path + "'");
    }
    std::fprintf(file, "source,destination,start_ps\n");
    for (const auto& flow : flows)
    {
        std::fprintf(file,
                     "%u,%u,%lld\n",
                     flow->source,
                     flow->destination,
                     (long long)flow->start.GetPicoSeconds());
    }
    std::fclose(file);
}

struct Cost
{
    double cpuSeconds, wallSeconds;
};

// User and system time of the process so far, and the wall clock.
Cost
Spent()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](timeval t) { return double(t.tv_sec) + 1e-6 * double(t.tv_usec); };
    const auto wall = std::chrono::steady_clock::now().time_since_epoch();
    return {seconds(usage.ru_utime) + seconds(usage.ru_stime),
            std::chrono::duration<double>(wall).count()};
}

uint64_t
MaxRssBytes()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return uint64_t(usage.ru_maxrss) * 1024;
}

// For the incast the bottleneck port; for the fat-tree the mean and the maximum over all ports.
std::string
QueueJson(const Fabric& fabric, bool fatTree)
{
    const auto& watches = fabric.Watches();
    if (watches.empty())
    {
        return "null";
    }
    char text[160];
    if (!fatTree)
    {
        const PortWatch& bottleneck = *watches.back(); // the receiver is the last host
        std::snprintf(text,
                      sizeof text,
                      "{\"mean_packets\":%.3f,\"p99_packets\":%zu,\"max_packets\":%zu,"
                      "\"counts_packet_in_service\":false}",
                      bottleneck.MeanPackets(),
                      bottleneck.QuantilePackets(0.99),
                      bottleneck.MaxPackets());
        return text;
    }
    double mean = 0, busiest = 0;
    size_t max = 0;
    for (const auto& watch : watches)
    {
        mean += watch->MeanPackets() / double(watches.size());
        busiest = std::max(busiest, watch->MeanPackets());
        max = std::max(max, watch->MaxPackets());
    }
    std::snprintf(text,
                  sizeof text,
                  "{\"ports\":%zu,\"mean_packets\":%.3f,\"highest_port_mean_packets\":%.3f,"
                  "\"max_packets\":%zu,\"counts_packet_in_service\":false}",
                  watches.size(),
                  mean,
                  busiest,
                  max);
    return text;
}

void
Print(const Options& options,
      const Fabric& fabric,
      const std::vector<std::unique_ptr<Flow>>& flows,
      const Scenario& scenario,
      Cost cost,
      uint64_t packetHops)
{
    double total = 0, squares = 0;
    uint64_t retransmissions = 0;
    std::string perFlow;
    for (const auto& flow : flows)
    {
        const double goodput =
            8.0 * double(flow->WarmBytes()) / (options.duration - options.warmup);
        total += goodput;
        squares += goodput * goodput;
        retransmissions += flow->Retransmissions();
        perFlow += (perFlow.empty() ? "" : ",") + std::to_string(std::llround(goodput));
    }
    const double jain = squares > 0 ? total * total / (double(flows.size()) * squares) : 0;
    std::printf("{\"simulator\":\"ns-3\",\"version\":\"%s\",\"scenario\":\"%s\","
                "\"transport\":\"%s\",\"seed\":%llu,\"duration_s\":%.9g,\"warmup_s\":%.9g,",
                NS3_VERSION,
                options.scenario.c_str(),
                scenario.transport.dctcp ? "dctcp" : "newreno",
                (unsigned long long)options.seed,
                options.duration,
                options.warmup);
    std::printf("\"packet_hops\":%llu,\"cpu_s\":%.6f,\"wall_s\":%.6f,\"max_rss_bytes\":%llu,",
                (unsigned long long)packetHops,
                cost.cpuSeconds,
                cost.wallSeconds,
                (unsigned long long)MaxRssBytes());
    std::printf("\"goodput_bps_total\":%.0f,\"goodput_bps_per_flow\":[%s],\"jain\":%.6f,",
                total,
                perFlow.c_str(),
                jain);
    std::printf("\"queue\":%s,\"drops\":%llu,\"marks\":%llu,\"retransmissions\":%s}\n",
                QueueJson(fabric, options.scenario == "S3").c_str(),
                (unsigned long long)fabric.Drops(),
                (unsigned long long)fabric.Marks(),
                options.observe ? std::to_string(retransmissions).c_str() : "null");
}

Options
Parse(int argc, char** argv)
{
    Options options;
    CommandLine line;
    line.AddValue("scenario", "S1, S2 or S3", options.scenario);
    line.AddValue("duration", "simulated seconds", options.duration);
    line.AddValue("warmup", "seconds left out of goodput and queue figures", options.warmup);
    line.AddValue("seed", "S3: permutation, start times, ECMP hash", options.seed);
    line.AddValue("transport", "S3: dctcp or newreno", options.transport);
    line.AddValue("k", "S3: ports of a switch, even", options.k);
    line.AddValue("sndbuf", "send buffer in packets; 0: the scenario's", options.sendBuffer);
    line.AddValue("observe", "queue occupancy and retransmissions; 0 for timing", options.observe);
    line.AddValue("flows", "write the flows as CSV to this file", options.flowsFile);
    line.Parse(argc, argv);
    if (!(options.duration > 0 && options.warmup >= 0 && options.warmup < options.duration))
    {
        Fail("--duration must be positive and --warmup shorter than it");
    }
    if (options.transport != "dctcp" && options.transport != "newreno")
    {
        Fail("--transport must be dctcp or newreno, not '" + options.transport + "'");
    }
    if (options.k < 2 || options.k % 2 != 0)
    {
        Fail("--k must be even and at least 2");
    }
    return options;
}

} // namespace

int
main(int argc, char** argv)
{
    Time::SetResolution(Time::PS); // 2 B at 10 Gb/s are 1.6 ns
    const Options options = Parse(argc, argv);
    const Scenario scenario = Define(options);
    ConfigureTransport(scenario.transport);

    Fabric fabric(scenario.fabric);
    std::vector<std::unique_ptr<Flow>> flows;
    if (options.scenario == "S3")
    {
        fabric.BuildFatTree(options.k, options.seed);
        flows = PermutationFlows(fabric.Hosts(), options.seed);
    }
    else
    {
        constexpr uint32_t senders = 9;
        fabric.BuildStar(senders + 1);
        flows = IncastFlows(senders);
    }
    if (!options.flowsFile.empty())
    {
        WriteFlows(options.flowsFile, flows);
    }

    uint16_t port = 5000;
    for (const auto& flow : flows)
    {
        flow->Open(fabric, port++, SegmentBytes(scenario.transport), options.observe);
        Simulator::Schedule(HANDSHAKES + flow->start, &Flow::Start, flow.get());
    }
    Simulator::Stop(HANDSHAKES);
    Simulator::Run();
    for (const auto& flow : flows)
    {
        if (!flow->IsConnected())
        {
            Fail("a connection was not made during the handshake phase");
        }
    }

    Simulator::Schedule(Seconds(options.warmup), [&] {
        for (const auto& flow : flows)
        {
            flow->MarkWarm();
        }
        for (const auto& watch : fabric.Watches())
        {
            watch->Settle();
            watch->Restart();
        }
    });
    Simulator::Stop(Seconds(options.duration));
    const uint64_t hopsBefore = fabric.PacketHops();
    const Cost before = Spent();
    Simulator::Run();
    const Cost after = Spent();
    for (const auto& watch : fabric.Watches())
    {
        watch->Settle();
    }
    Print(options,
          fabric,
          flows,
          scenario,
          {after.cpuSeconds - before.cpuSeconds, after.wallSeconds - before.wallSeconds},
          fabric.PacketHops() - hopsBefore);
    Simulator::Destroy();
    return 0;
}
