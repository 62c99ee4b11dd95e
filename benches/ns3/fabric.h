// The network under the flows: hosts, output-queued switches, per-flow ECMP, and what is observed
// on ports.
//
// Everything is wired by hand rather than through Ipv4AddressHelper, because assigning an address
// with the helper silently installs FqCoDel on the device.
#pragma once

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

// One output of the splitmix64 generator: the only source of randomness of this driver, so that
// another program can repeat its draws in three lines.
inline uint64_t
Mix64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

constexpr uint32_t FIRST_HOST_ADDRESS = 0x0a000001; // 10.0.0.1

inline ns3::Ipv4Address
HostAddress(uint32_t host)
{
    return ns3::Ipv4Address(FIRST_HOST_ADDRESS + host);
}

inline uint32_t
HostOf(ns3::Ipv4Address address)
{
    return address.Get() - FIRST_HOST_ADDRESS;
}

// Forwarding by host number. Ports 0..down lead to the hosts first..first+down*span, `span` of them
// each; every other destination goes to one of the remaining ports, chosen by a hash of (source,
// destination). With at most one flow between an ordered pair of hosts that is a flow hash.
//
// ns-3 3.37 has only per-packet random ECMP, and its static routing searches a list per packet.
class Forwarding : public ns3::Ipv4RoutingProtocol
{
  public:
    void SetReach(uint32_t first, uint32_t down, uint32_t span, uint64_t salt)
    {
        m_first = first;
        m_down = down;
        m_span = span;
        m_salt = salt;
    }

    void AddPort(ns3::Ptr<ns3::NetDevice> device, ns3::Ipv4Address source)
    {
        auto route = ns3::Create<ns3::Ipv4Route>();
        route->SetOutputDevice(device);
        route->SetSource(source);
        route->SetGateway(ns3::Ipv4Address::GetAny());
        m_ports.push_back(route);
    }

    void SetLocal()
    {
        m_isHost = true;
    }

    ns3::Ptr<ns3::Ipv4Route> RouteOutput(ns3::Ptr<ns3::Packet>,
                                         const ns3::Ipv4Header&,
                                         ns3::Ptr<ns3::NetDevice>,
                                         ns3::Socket::SocketErrno& error) override
    {
        error = ns3::Socket::ERROR_NOTERROR;
        return m_ports.at(0);
    }

    bool RouteInput(ns3::Ptr<const ns3::Packet> packet,
                    const ns3::Ipv4Header& header,
                    ns3::Ptr<const ns3::NetDevice> device,
                    UnicastForwardCallback forward,
                    MulticastForwardCallback,
                    LocalDeliverCallback deliver,
                    ErrorCallback) override
    {
        if (m_isHost)
        {
            deliver(packet, header, m_ipv4->GetInterfaceForDevice(device));
        }
        else
        {
            forward(m_ports[PortTo(HostOf(header.GetSource()), HostOf(header.GetDestination()))],
                    packet,
                    header);
        }
        return true;
    }

    void SetIpv4(ns3::Ptr<ns3::Ipv4> ipv4) override
    {
        m_ipv4 = ipv4;
    }

    void NotifyInterfaceUp(uint32_t) override {}
    void NotifyInterfaceDown(uint32_t) override {}
    void NotifyAddAddress(uint32_t, ns3::Ipv4InterfaceAddress) override {}
    void NotifyRemoveAddress(uint32_t, ns3::Ipv4InterfaceAddress) override {}
    void PrintRoutingTable(ns3::Ptr<ns3::OutputStreamWrapper>, ns3::Time::Unit) const override {}

  private:
    uint32_t PortTo(uint32_t source, uint32_t destination) const
    {
        const uint32_t below = (destination - m_first) / m_span; // wraps for hosts before m_first
        if (below < m_down)
        {
            return below;
        }
        const uint64_t flow = uint64_t{source} << 32 | destination;
        return m_down + Mix64(flow ^ m_salt) % (m_ports.size() - m_down);
    }

    ns3::Ptr<ns3::Ipv4> m_ipv4;
    std::vector<ns3::Ptr<ns3::Ipv4Route>> m_ports;
    bool m_isHost = false;
    uint32_t m_first = 0, m_down = 0, m_span = 1;
    uint64_t m_salt = 0;
};

// Time-weighted occupancy of one switch port: packets waiting (queue disc and device queue), the
// one in service not counted.
class PortWatch
{
  public:
    explicit PortWatch(ns3::Ptr<ns3::PointToPointNetDevice> device,
                       ns3::Ptr<ns3::QueueDisc> disc)
    {
        device->GetQueue()->TraceConnectWithoutContext(
            "PacketsInQueue",
            ns3::MakeCallback(&PortWatch::OnChange, this));
        if (disc)
        {
            disc->TraceConnectWithoutContext("PacketsInQueue",
                                             ns3::MakeCallback(&PortWatch::OnChange, this));
        }
    }

    PortWatch(const PortWatch&) = delete; // its address is in the callbacks

    // Forgets what was seen so far; the occupancy itself stays.
    void Restart()
    {
        m_since = ns3::Simulator::Now().GetTimeStep();
        m_timeAt.assign(m_timeAt.size(), 0);
    }

    // Accounts for the time up to now. Call before reading.
    void Settle()
    {
        const int64_t now = ns3::Simulator::Now().GetTimeStep();
        if (now == m_since)
        {
            return;
        }
        if (m_timeAt.size() <= m_waiting)
        {
            m_timeAt.resize(m_waiting + 1, 0);
        }
        m_timeAt[m_waiting] += now - m_since;
        m_since = now;
    }

    double MeanPackets() const
    {
        double weighted = 0;
        for (size_t n = 0; n < m_timeAt.size(); ++n)
        {
            weighted += double(n) * double(m_timeAt[n]);
        }
        return Total() > 0 ? weighted / double(Total()) : 0;
    }

    // The smallest occupancy that was not exceeded during the fraction `q` of the time.
    size_t QuantilePackets(double q) const
    {
        double left = q * double(Total());
        for (size_t n = 0; n < m_timeAt.size(); ++n)
        {
            left -= double(m_timeAt[n]);
            if (left <= 0)
            {
                return n;
            }
        }
        return 0;
    }

    size_t MaxPackets() const
    {
        size_t n = m_timeAt.size();
        while (n > 0 && m_timeAt[n - 1] == 0)
        {
            --n;
        }
        return n > 0 ? n - 1 : 0;
    }

  private:
    void OnChange(uint32_t before, uint32_t after)
    {
        Settle();
        m_waiting += after - before; // the sum of two queues; unsigned wrap-around cancels
    }

    int64_t Total() const
    {
        int64_t total = 0;
        for (int64_t time : m_timeAt)
        {
            total += time;
        }
        return total;
    }

    uint32_t m_waiting = 0;
    int64_t m_since = 0;
    std::vector<int64_t> m_timeAt; // index: packets waiting; value: time steps
};

struct FabricParams
{
    uint64_t bitsPerSecond;
    ns3::Time delay;      // of one link
    uint32_t portPackets; // waiting room of a switch port, the packet in service not counted
    uint32_t markPackets; // mark what finds this many waiting on arrival; 0: plain drop-tail
    bool observe;         // watch switch ports
};

class Fabric
{
  public:
    explicit Fabric(const FabricParams& params)
        : m_params(params)
    {
        m_internet.SetIpv6StackInstall(false);
        // The device adds a 2-byte PPP header, which the wire sizes to be compared do not have.
        // Taking its serialisation time out of the gap after a frame, and out of the propagation
        // delay, makes a 1000 B IP packet occupy the link for exactly 1000 B, and an ACK for 40 B.
        const ns3::Time ppp = ns3::Seconds(16.0 / double(params.bitsPerSecond));
        m_link.SetDeviceAttribute("DataRate",
                                  ns3::DataRateValue(ns3::DataRate(params.bitsPerSecond)));
        m_link.SetDeviceAttribute("InterframeGap", ns3::TimeValue(ns3::Time() - ppp));
        m_link.SetChannelAttribute("Delay", ns3::TimeValue(params.delay - ppp));
        if (params.markPackets > 0)
        {
            // One packet of the waiting room, and of the threshold, is the device queue below.
            const double threshold = params.markPackets - 1;
            m_red.SetRootQueueDisc("ns3::RedQueueDisc",
                                   "MaxSize", Packets(params.portPackets - 1),
                                   "MinTh", ns3::DoubleValue(threshold),
                                   "MaxTh", ns3::DoubleValue(threshold),
                                   "QW", ns3::DoubleValue(1), // the instantaneous length
                                   "Gentle", ns3::BooleanValue(false),
                                   "UseEcn", ns3::BooleanValue(true),
                                   "UseHardDrop", ns3::BooleanValue(false));
        }
    }

    // One switch; host h on port h.
    void BuildStar(uint32_t hosts)
    {
        const auto ends = AddHosts(hosts);
        const auto hub = AddSwitch(0, hosts, 1, 0);
        for (const auto& host : ends)
        {
            Connect(hub, host);
        }
    }

    // Three tiers of k-port switches, k^3/4 hosts. Edge and aggregation switches choose their
    // uplinks by flow hash, each with its own salt; the way down is unique.
    void BuildFatTree(uint32_t k, uint64_t seed)
    {
        const uint32_t half = k / 2;
        const auto ends = AddHosts(k * half * half);
        uint64_t salt = seed;
        std::vector<ns3::Ptr<ns3::Node>> core;
        for (uint32_t c = 0; c < half * half; ++c)
        {
            core.push_back(AddSwitch(0, k, half * half, 0));
        }
        for (uint32_t pod = 0; pod < k; ++pod)
        {
            const uint32_t podFirst = pod * half * half;
            std::vector<ns3::Ptr<ns3::Node>> edge;
            for (uint32_t e = 0; e < half; ++e)
            {
                const uint32_t first = podFirst + e * half;
                edge.push_back(AddSwitch(first, half, 1, salt = Mix64(salt)));
                for (uint32_t h = 0; h < half; ++h)
                {
                    Connect(edge.back(), ends[first + h]);
                }
            }
            for (uint32_t a = 0; a < half; ++a)
            {
                const auto aggregation = AddSwitch(podFirst, half, half, salt = Mix64(salt));
                for (const auto& below : edge)
                {
                    Connect(aggregation, below);
                }
                for (uint32_t c = 0; c < half; ++c)
                {
                    Connect(core[a * half + c], aggregation);
                }
            }
        }
    }

    ns3::Ptr<ns3::Node> Host(uint32_t host) const
    {
        return m_hosts.at(host);
    }

    uint32_t Hosts() const
    {
        return m_hosts.size();
    }

    // The watches, in order of construction: for a star, port h leads to host h.
    const std::vector<std::unique_ptr<PortWatch>>& Watches() const
    {
        return m_watches;
    }

    // Packets that completed a link so far.
    uint64_t PacketHops() const
    {
        return m_hops;
    }

    uint64_t Marks() const
    {
        uint64_t marks = 0;
        for (const auto& disc : m_discs)
        {
            marks += disc->GetStats().nTotalMarkedPackets;
        }
        return marks;
    }

    uint64_t Drops() const
    {
        uint64_t drops = m_dropsWithoutDisc;
        for (const auto& disc : m_discs)
        {
            drops += disc->GetStats().nTotalDroppedPackets;
        }
        for (const auto& device : m_devices)
        {
            drops += device->GetQueue()->GetTotalDroppedPackets(); // always 0: TC stops first
        }
        return drops;
    }

  private:
    using Device = ns3::Ptr<ns3::PointToPointNetDevice>;

    static ns3::QueueSizeValue Packets(uint32_t n)
    {
        return ns3::QueueSizeValue(ns3::QueueSize(ns3::QueueSizeUnit::PACKETS, n));
    }

    ns3::Ptr<ns3::Node> AddNode(ns3::Ptr<Forwarding> forwarding)
    {
        const auto node = ns3::CreateObject<ns3::Node>();
        m_internet.Install(node);
        node->GetObject<ns3::Ipv4>()->SetRoutingProtocol(forwarding);
        // Without a queue disc a full port drops in the traffic-control layer, and only there.
        node->GetObject<ns3::TrafficControlLayer>()->TraceConnectWithoutContext(
            "TcDrop",
            ns3::MakeCallback(&Fabric::OnDropWithoutDisc, this));
        return node;
    }

    const std::vector<ns3::Ptr<ns3::Node>>& AddHosts(uint32_t count)
    {
        for (uint32_t h = 0; h < count; ++h)
        {
            const auto forwarding = ns3::CreateObject<Forwarding>();
            forwarding->SetLocal();
            m_hosts.push_back(AddNode(forwarding));
        }
        return m_hosts;
    }

    ns3::Ptr<ns3::Node> AddSwitch(uint32_t first, uint32_t down, uint32_t span, uint64_t salt)
    {
        const auto forwarding = ns3::CreateObject<Forwarding>();
        forwarding->SetReach(first, down, span, salt);
        return AddNode(forwarding);
    }

    // Adds the next port of `upper` and of `lower`, and a link between them.
    void Connect(ns3::Ptr<ns3::Node> upper, ns3::Ptr<ns3::Node> lower)
    {
        const auto devices = m_link.Install(upper, lower);
        for (uint32_t side = 0; side < 2; ++side)
        {
            const auto device = ns3::DynamicCast<ns3::PointToPointNetDevice>(devices.Get(side));
            m_devices.push_back(device);
            device->TraceConnectWithoutContext("PhyRxEnd",
                                               ns3::MakeCallback(&Fabric::OnHop, this));
            AddInterface(device);
        }
    }

    void AddInterface(Device device)
    {
        const auto node = device->GetNode();
        const auto ipv4 = node->GetObject<ns3::Ipv4>();
        const uint32_t interface = ipv4->AddInterface(device);
        const auto host = std::find(m_hosts.begin(), m_hosts.end(), node);
        ns3::Ipv4Address source = ns3::Ipv4Address::GetAny();
        if (host != m_hosts.end())
        {
            source = HostAddress(host - m_hosts.begin());
            ipv4->AddAddress(interface, ns3::Ipv4InterfaceAddress(source, "255.0.0.0"));
            device->GetQueue()->SetMaxSize(Packets(HOST_QUEUE_PACKETS).Get());
        }
        else
        {
            BuildSwitchPort(device);
        }
        ipv4->SetUp(interface);
        ns3::DynamicCast<Forwarding>(ipv4->GetRoutingProtocol())->AddPort(device, source);
    }

    void BuildSwitchPort(Device device)
    {
        ns3::Ptr<ns3::QueueDisc> disc;
        if (m_params.markPackets > 0)
        {
            disc = m_red.Install(device).Get(0);
            m_discs.push_back(disc);
        }
        device->GetQueue()->SetMaxSize(Packets(disc ? 1 : m_params.portPackets).Get());
        if (m_params.observe)
        {
            m_watches.push_back(std::make_unique<PortWatch>(device, disc));
        }
    }

    void OnHop(ns3::Ptr<const ns3::Packet>)
    {
        ++m_hops;
    }

    void OnDropWithoutDisc(ns3::Ptr<const ns3::Packet>)
    {
        ++m_dropsWithoutDisc;
    }

    static constexpr uint32_t HOST_QUEUE_PACKETS = 1000000; // a host never drops its own packets

    FabricParams m_params;
    ns3::InternetStackHelper m_internet;
    ns3::PointToPointHelper m_link;
    ns3::TrafficControlHelper m_red;
    std::vector<ns3::Ptr<ns3::Node>> m_hosts;
    std::vector<Device> m_devices;
    std::vector<ns3::Ptr<ns3::QueueDisc>> m_discs;
    std::vector<std::unique_ptr<PortWatch>> m_watches;
    uint64_t m_hops = 0;
    uint64_t m_dropsWithoutDisc = 0;
};
