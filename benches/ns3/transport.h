// TCP as the scenarios want it, and one endless flow.
#pragma once

#include "fabric.h"

// A congestion controller whose window never exceeds `cap` packets. A send buffer of that size
// bounds what is in flight, but the window goes on growing behind it, and cuts by marks then act on
// a window that nobody uses.
template <class Controller>
class Capped : public Controller
{
  public:
    static inline uint32_t cap = 0;

    static ns3::TypeId GetTypeId()
    {
        static ns3::TypeId id = ns3::TypeId("plimsoll::Capped<" +
                                            Controller::GetTypeId().GetName() + ">")
                                    .template SetParent<Controller>()
                                    .template AddConstructor<Capped<Controller>>();
        return id;
    }

    void IncreaseWindow(ns3::Ptr<ns3::TcpSocketState> tcb, uint32_t segmentsAcked) override
    {
        Controller::IncreaseWindow(tcb, segmentsAcked);
        if (tcb->m_cWnd > cap * tcb->m_segmentSize)
        {
            tcb->m_cWnd = cap * tcb->m_segmentSize;
        }
    }

    ns3::Ptr<ns3::TcpCongestionOps> Fork() override
    {
        return ns3::CopyObject<Capped<Controller>>(this);
    }
};

struct TransportParams
{
    bool dctcp;             // else NewReno
    uint32_t dataWireBytes; // IP packet size of a full segment
    uint32_t windowCap;     // packets; 0: none
    uint32_t sendBuffer;    // packets: also bounds what lies between the first hole and the newest
};

constexpr uint32_t HEADER_BYTES = 40; // IPv4 and TCP without options

inline uint32_t
SegmentBytes(const TransportParams& params)
{
    return params.dataWireBytes - HEADER_BYTES;
}

template <class Controller>
ns3::TypeId
ControllerType(uint32_t cap)
{
    Capped<Controller>::cap = cap;
    return cap > 0 ? Capped<Controller>::GetTypeId() : Controller::GetTypeId();
}

// Must run before the first node is made.
inline void
ConfigureTransport(const TransportParams& params)
{
    using namespace ns3;
    const TypeId controller = params.dctcp ? ControllerType<TcpDctcp>(params.windowCap)
                                           : ControllerType<TcpNewReno>(params.windowCap);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(controller));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SegmentBytes(params)));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize",
                       UintegerValue(params.sendBuffer * SegmentBytes(params)));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(8 << 20));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
}

// One endless flow between two hosts. It connects when made and stays silent until Start.
class Flow
{
  public:
    const uint32_t source, destination;
    const ns3::Time start; // after the end of the handshakes

    Flow(uint32_t source, uint32_t destination, ns3::Time start)
        : source(source),
          destination(destination),
          start(start)
    {
    }

    Flow(const Flow&) = delete; // its address is in the callbacks

    void Open(const Fabric& fabric, uint16_t port, uint32_t segmentBytes, bool observe)
    {
        using namespace ns3;
        m_segmentBytes = segmentBytes;
        m_listener = Socket::CreateSocket(fabric.Host(destination), TcpSocketFactory::GetTypeId());
        m_listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
        m_listener->Listen();
        m_listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                      MakeCallback(&Flow::OnAccept, this));
        m_sender = Socket::CreateSocket(fabric.Host(source), TcpSocketFactory::GetTypeId());
        if (observe)
        {
            m_sender->TraceConnectWithoutContext("Tx", MakeCallback(&Flow::OnTransmit, this));
        }
        m_sender->Bind();
        m_sender->Connect(InetSocketAddress(HostAddress(destination), port));
    }

    void Start()
    {
        m_sender->SetSendCallback(ns3::MakeCallback(&Flow::Fill, this));
        Fill(m_sender, m_sender->GetTxAvailable());
    }

    bool IsConnected() const
    {
        return m_receiver != nullptr;
    }

    // Payload bytes delivered in order since the last MarkWarm.
    uint64_t WarmBytes() const
    {
        return m_bytes - m_bytesBeforeWarm;
    }

    void MarkWarm()
    {
        m_bytesBeforeWarm = m_bytes;
    }

    uint64_t Retransmissions() const
    {
        return m_retransmissions;
    }

  private:
    // Whole segments only, so that the send buffer never splits or joins packets.
    void Fill(ns3::Ptr<ns3::Socket> socket, uint32_t)
    {
        while (socket->GetTxAvailable() >= m_segmentBytes)
        {
            socket->Send(ns3::Create<ns3::Packet>(m_segmentBytes));
        }
    }

    void OnAccept(ns3::Ptr<ns3::Socket> receiver, const ns3::Address&)
    {
        m_receiver = receiver;
        m_receiver->SetRecvCallback(ns3::MakeCallback(&Flow::OnReceive, this));
    }

    void OnReceive(ns3::Ptr<ns3::Socket> socket)
    {
        while (const auto packet = socket->Recv())
        {
            m_bytes += packet->GetSize();
        }
    }

    void OnTransmit(ns3::Ptr<const ns3::Packet> packet,
                    const ns3::TcpHeader& header,
                    ns3::Ptr<const ns3::TcpSocketBase>)
    {
        if (packet->GetSize() == 0)
        {
            return;
        }
        const auto end = header.GetSequenceNumber() + packet->GetSize();
        if (end > m_highest)
        {
            m_highest = end;
        }
        else
        {
            ++m_retransmissions;
        }
    }

    uint32_t m_segmentBytes = 0;
    ns3::Ptr<ns3::Socket> m_listener, m_sender, m_receiver;
    uint64_t m_bytes = 0, m_bytesBeforeWarm = 0, m_retransmissions = 0;
    ns3::SequenceNumber32 m_highest{0};
};
