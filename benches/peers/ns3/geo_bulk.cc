// Long bulk transfers over one geostationary path, for the ns-3 simulator.
//
//   geo_bulk --flows=20 --cc=cubic --loss=1e-3 --seed=1        (--PrintHelp lists all parameters)
//
// Licence: this file is our own and has the licence of the project. ns-3 has the GPL, version 2, and a program that is
// linked with it may be passed on under that licence only. So this file is never part of Skyhaul's build, packages or
// releases: whoever wants the comparison compiles it on their own machine (compare_peers.py does), and passes no
// binary on.
//
// Topology
//
//   A (all senders) ==(rate, drop-tail queue, rtt/2)==> random loss, B (all receivers)
//                   <=====(fast, loss-free, rtt/2)=====
//
// The last line of standard output is one JSON object.
//
// What the parameters mean in ns-3 terms:
//   --rate     packets per second of full packets on the wire: 960 bytes of payload, 40 of headers (no options: time
//              stamps are off) and the 2 bytes of PPP that ns-3 adds.
//   --buffer   packets that may wait in the device's queue, not counting the one in transmission. The queue disc that
//              ns-3 would put above the device is removed.
//   --loss     probability that a packet that has crossed the link is discarded by B's device: it has used its share
//              of the rate. It acts on the SYN too.
//   --rtt      propagation only, seconds.
//   --window   segments that may be outstanding: the sender's buffer. The receiver offers four times as much, because
//              ns-3.37 crashes where a recovery fills the receiver's window exactly (TcpTxBuffer::NextSeg, rule 2,
//              then asks for a segment without bytes). In Skyhaul the receiver's window is the limit.
// Everything that ns-3 has an attribute for is set here, defaults included.
//
// Three controls have a second form, which takes one peculiarity of ns-3.37 away, so that what it does to the goodput can
// be measured: hybla-rho, vegas-halving, westwood-plus-once. CUBIC and Hybla have one more, cubic-calm and hybla-calm: see
// Calm below. For any control --nextseg=rfc chooses what to send as RFC 6675 says: see TcpTxBuffer::NextSeg below.

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cstdint>
#include <dlfcn.h>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

// Up to 3.37 a mode of TcpWestwood, later a class of its own.
#if __has_include("ns3/tcp-westwood-plus.h")
#define WESTWOOD TcpWestwoodPlus
#define WESTWOOD_NAME "ns3::TcpWestwoodPlus"
#else
#define WESTWOOD TcpWestwood
#define WESTWOOD_NAME "ns3::TcpWestwood"
#define WESTWOOD_HAS_MODES
#endif

namespace ns3
{

/// Hybla whose rho follows the least RTT. ns-3 computes it only when a smoothed RTT equals the least one, which is that
/// of the SYN; segments take longer to transmit, so rho stays 1 and Hybla is NewReno.
class HyblaRho : public TcpHybla
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("ns3::HyblaRho").SetParent<TcpHybla>().AddConstructor<HyblaRho>();
        return tid;
    }

    void PktsAcked(Ptr<TcpSocketState> tcb, uint32_t segments, const Time&) override
    {
        TcpHybla::PktsAcked(tcb, segments, tcb->m_minRtt);
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<HyblaRho>(this);
    }
};

/// Vegas that halves the window after a loss, as Linux does. In ns-3 a loss takes one segment, or what is above the
/// threshold, which is kept at three quarters of the window. FlightSize without its two segments of limited transmit is
/// what is halved (RFC 5681 §3.2): at most the window.
class VegasHalving : public TcpVegas
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("ns3::VegasHalving").SetParent<TcpVegas>().AddConstructor<VegasHalving>();
        return tid;
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> tcb, uint32_t inFlight) override
    {
        // Vegas itself calls with 0 when it shrinks by delay. Otherwise `inFlight` is the pipe, without what is lost or
        // selectively acknowledged.
        const uint32_t flight = std::min<uint32_t>(tcb->m_highTxMark.Get() - tcb->m_lastAckedSeq, tcb->m_cWnd.Get());
        return inFlight == 0 ? TcpVegas::GetSsThresh(tcb, inFlight) : std::max(2 * tcb->m_segmentSize, flight / 2);
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<VegasHalving>(this);
    }
};

/// Westwood+ that counts what is delivered once. ns-3 counts a segment for each duplicate acknowledgement of a recovery,
/// and again all that the acknowledgement at its end covers.
class WestwoodOnce : public WESTWOOD
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("ns3::WestwoodOnce").SetParent<WESTWOOD>().AddConstructor<WestwoodOnce>();
        return tid;
    }

    void PktsAcked(Ptr<TcpSocketState> tcb, uint32_t segments, const Time& rtt) override
    {
        const uint64_t covered = (tcb->m_lastAckedSeq.GetValue() - 1) / tcb->m_segmentSize;
        if (covered == m_covered)
        {
            m_counted += segments;
            WESTWOOD::PktsAcked(tcb, segments, rtt);
            return;
        }
        m_covered = covered;
        const uint32_t fresh = covered > m_counted ? covered - m_counted : 0;
        m_counted += fresh;
        WESTWOOD::PktsAcked(tcb, fresh, rtt);
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<WestwoodOnce>(this);
    }

  private:
    uint64_t m_covered{0};
    uint64_t m_counted{0};
};

/// Whether the next segment is chosen as RFC 6675 says, instead of as ns-3 does.
static bool g_nextSegOfTheRfc = false;

/// What to send next. The library calls this definition instead of its own, which is asked unless --nextseg=rfc is given.
///
/// RFC 6675 §4 lets a recovery that has nothing else to send repeat only what lies below the highest selective
/// acknowledgement (rule 3, condition 1.b). ns-3 leaves that condition out, and repeats everything in flight.
bool
TcpTxBuffer::NextSeg(SequenceNumber32* seq, SequenceNumber32* seqHigh, bool isRecovery) const
{
    if (!g_nextSegOfTheRfc)
    {
        using Original = bool (*)(const TcpTxBuffer*, SequenceNumber32*, SequenceNumber32*, bool);
        static const auto original = reinterpret_cast<Original>(
            dlsym(RTLD_NEXT, "_ZNK3ns311TcpTxBuffer7NextSegEPNS_14SequenceNumberIjiEES3_b"));
        NS_ABORT_MSG_IF(original == nullptr, "this ns-3 has another NextSeg");
        return original(this, seq, seqHigh, isRecovery);
    }
    const auto give = [&](SequenceNumber32 from) {
        *seq = from;
        *seqHigh = from + m_segmentSize;
        return true;
    };
    // Rule 1: what is lost and not repeated yet.
    for (const TcpTxItem* item : m_sentList)
    {
        if (item->m_lost && !item->m_retrans && !item->m_sacked)
        {
            return give(item->m_startSeq);
        }
    }
    // Rule 2: new data, as far as the receiver's window goes.
    const SequenceNumber32 next = m_firstByteSeq.Get() + m_sentSize;
    const SequenceNumber32 edge = m_firstByteSeq.Get() + (m_rWndCallback.IsNull() ? m_maxBuffer : m_rWndCallback());
    if (SizeFromSequence(next) > 0 && next < edge)
    {
        give(next);
        *seqHigh = std::min(*seqHigh, edge);
        return true;
    }
    // Rule 3: what is not known to be lost, below the highest selective acknowledgement.
    for (const TcpTxItem* item : m_sentList)
    {
        if (isRecovery && !item->m_retrans && !item->m_sacked && item->m_startSeq < m_highestSack.second)
        {
            return give(item->m_startSeq);
        }
    }
    return false;
}

/// A control whose window does not grow with the acknowledgement that ends a recovery, and in slow start by one segment
/// per acknowledgement at most. ns-3 hands both all that an acknowledgement covers: at the end of a recovery a
/// window, after a timeout all that had arrived beyond the hole.
template <class Control>
class Calm : public Control
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("ns3::Calm" + Control::GetTypeId().GetName().substr(5))
                                .template SetParent<Control>()
                                .template AddConstructor<Calm<Control>>();
        return tid;
    }

    void CongestionStateSet(Ptr<TcpSocketState> tcb, const TcpSocketState::TcpCongState_t now) override
    {
        m_ends = now == TcpSocketState::CA_OPEN && m_was == TcpSocketState::CA_RECOVERY;
        m_was = now;
        Control::CongestionStateSet(tcb, now);
    }

    void IncreaseWindow(Ptr<TcpSocketState> tcb, uint32_t segments) override
    {
        if (!m_ends)
        {
            const bool slowStart = tcb->m_cWnd < tcb->m_ssThresh;
            Control::IncreaseWindow(tcb, slowStart ? std::min<uint32_t>(segments, 1) : segments);
        }
        m_ends = false;
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<Calm<Control>>(Ptr<Calm<Control>>(this));
    }

  private:
    TcpSocketState::TcpCongState_t m_was{TcpSocketState::CA_OPEN};
    bool m_ends{false};
};

NS_OBJECT_ENSURE_REGISTERED(HyblaRho);
NS_OBJECT_ENSURE_REGISTERED(VegasHalving);
NS_OBJECT_ENSURE_REGISTERED(WestwoodOnce);

} // namespace ns3

using namespace ns3;

namespace
{

constexpr uint32_t SEGMENT = 960;
constexpr uint32_t HEADERS = 40;
constexpr uint32_t PPP = 2;

/// A greedy sender and what is counted of it.
class Flow : public SimpleRefCount<Flow>
{
  public:
    Flow(Ptr<Socket> socket, Address peer, double start)
        : start(start),
          m_socket(socket),
          m_peer(peer)
    {
        Simulator::Schedule(Seconds(start), &Flow::Begin, this);
    }

    uint64_t AckedSegments() const
    {
        return m_acked / SEGMENT;
    }

    const double start;
    uint64_t sent{0};
    uint64_t retransmitted{0};
    uint64_t timeouts{0};
    uint64_t recoveries{0};
    bool died{false};

  private:
    void Begin()
    {
        m_socket->TraceConnectWithoutContext("HighestRxAck", MakeCallback(&Flow::Acked, this));
        m_socket->TraceConnectWithoutContext("CongState", MakeCallback(&Flow::State, this));
        m_socket->TraceConnectWithoutContext("Tx", MakeCallback(&Flow::Sent, this));
        m_socket->SetConnectCallback(MakeCallback(&Flow::Connected, this), MakeCallback(&Flow::Failed, this));
        m_socket->SetCloseCallbacks(MakeCallback(&Flow::Failed, this), MakeCallback(&Flow::Failed, this));
        m_socket->SetSendCallback(MakeCallback(&Flow::Writable, this));
        NS_ABORT_MSG_IF(m_socket->Bind() != 0, "bind");
        NS_ABORT_MSG_IF(m_socket->Connect(m_peer) != 0, "connect");
    }

    void Connected(Ptr<Socket>)
    {
        m_connected = true;
        Fill();
    }

    void Failed(Ptr<Socket>)
    {
        died = true;
    }

    void Writable(Ptr<Socket>, uint32_t)
    {
        if (m_connected)
        {
            Fill();
        }
    }

    void Fill()
    {
        while (m_socket->GetTxAvailable() >= SEGMENT)
        {
            if (m_socket->Send(Create<Packet>(SEGMENT)) < 0)
            {
                return;
            }
        }
    }

    void Acked(SequenceNumber32 before, SequenceNumber32 now)
    {
        // the SYN has number 0 and is no data
        if (now > SequenceNumber32(1) && before >= SequenceNumber32(1))
        {
            m_acked += now - before;
        }
    }

    void State(TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now)
    {
        recoveries += now == TcpSocketState::CA_RECOVERY;
        timeouts += now == TcpSocketState::CA_LOSS;
    }

    void Sent(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
    {
        if (packet->GetSize() == 0)
        {
            return;
        }
        sent += 1;
        if (header.GetSequenceNumber() < m_next)
        {
            retransmitted += 1;
        }
        else
        {
            m_next = header.GetSequenceNumber() + SequenceNumber32(packet->GetSize());
        }
    }

    Ptr<Socket> m_socket;
    Address m_peer;
    bool m_connected{false};
    uint64_t m_acked{0};
    SequenceNumber32 m_next{1};
};

void
Drain(Ptr<Socket> socket)
{
    while (socket->Recv())
    {
    }
}

void
Accepted(Ptr<Socket> socket, const Address&)
{
    socket->SetRecvCallback(MakeCallback(&Drain));
}

/// The congestion control called `name`, with its attributes set to what the comparison says.
TypeId
Control(const std::string& name, double rrtt)
{
    if (name == "newreno")
    {
        return TcpNewReno::GetTypeId();
    }
    if (name == "westwood-plus" || name == "westwood-plus-once")
    {
#ifdef WESTWOOD_HAS_MODES
        Config::SetDefault(WESTWOOD_NAME "::ProtocolType", StringValue("WestwoodPlus"));
#endif
        Config::SetDefault(WESTWOOD_NAME "::FilterType", StringValue("Tustin"));
        return name == "westwood-plus" ? WESTWOOD::GetTypeId() : WestwoodOnce::GetTypeId();
    }
    if (name == "hybla" || name == "hybla-rho" || name == "hybla-calm")
    {
        Config::SetDefault("ns3::TcpHybla::RRTT", TimeValue(Seconds(rrtt)));
        return name == "hybla"       ? TcpHybla::GetTypeId()
               : name == "hybla-rho" ? HyblaRho::GetTypeId()
                                     : Calm<TcpHybla>::GetTypeId();
    }
    if (name == "cubic" || name == "cubic-calm")
    {
        Config::SetDefault("ns3::TcpCubic::Beta", DoubleValue(0.7));
        Config::SetDefault("ns3::TcpCubic::C", DoubleValue(0.4));
        Config::SetDefault("ns3::TcpCubic::FastConvergence", BooleanValue(true));
        Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(false));
        return name == "cubic" ? TcpCubic::GetTypeId() : Calm<TcpCubic>::GetTypeId();
    }
    if (name == "vegas" || name == "vegas-halving")
    {
        Config::SetDefault("ns3::TcpVegas::Alpha", UintegerValue(2));
        Config::SetDefault("ns3::TcpVegas::Beta", UintegerValue(4));
        Config::SetDefault("ns3::TcpVegas::Gamma", UintegerValue(1));
        return name == "vegas" ? TcpVegas::GetTypeId() : VegasHalving::GetTypeId();
    }
    std::cerr << "geo_bulk: unknown --cc=" << name
              << " (known: newreno, westwood-plus, westwood-plus-once, hybla, hybla-rho, hybla-calm, cubic, cubic-calm, vegas, "
                 "vegas-halving)" << std::endl;
    std::exit(2);
}

template <class Of, class F>
std::string
List(const std::vector<Of>& all, F value)
{
    std::ostringstream out;
    out << "[";
    for (size_t i = 0; i < all.size(); ++i)
    {
        out << (i ? ", " : "") << value(all[i]);
    }
    out << "]";
    return out.str();
}

} // namespace

int
main(int argc, char* argv[])
{
    uint32_t flows = 20;
    std::string cc = "cubic";
    double loss = 1e-3;
    uint32_t seed = 1;
    double duration = 550;
    uint32_t rate = 1300;
    uint32_t buffer = 50;
    double rtt = 0.55;
    uint32_t window = 64;
    double minrto = 0.2;
    uint32_t iw = 2;
    std::string nextseg = "ns3";
    double rrtt = 0.025;
    CommandLine cmd;
    cmd.AddValue("flows", "number of flows", flows);
    cmd.AddValue("cc", "the congestion control", cc);
    cmd.AddValue("loss", "probability of loss per packet", loss);
    cmd.AddValue("seed", "run number", seed);
    cmd.AddValue("duration", "simulated seconds", duration);
    cmd.AddValue("rate", "packets per second", rate);
    cmd.AddValue("buffer", "packets that may wait", buffer);
    cmd.AddValue("rtt", "propagation both ways, seconds", rtt);
    cmd.AddValue("window", "segments that may be outstanding", window);
    cmd.AddValue("minrto", "lower bound of the retransmission timer, seconds", minrto);
    cmd.AddValue("iw", "initial window, segments", iw);
    cmd.AddValue("rrtt", "reference RTT of Hybla, seconds", rrtt);
    cmd.AddValue("nextseg", "what is sent next: ns3 or rfc", nextseg);
    cmd.Parse(argc, argv);
    if (nextseg != "ns3" && nextseg != "rfc")
    {
        std::cerr << "geo_bulk: unknown --nextseg=" << nextseg << " (known: ns3, rfc)" << std::endl;
        return 2;
    }
    g_nextSegOfTheRfc = nextseg == "rfc";
    RngSeedManager::SetSeed(1);
    RngSeedManager::SetRun(seed);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(Control(cc, rrtt)));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(TypeId::LookupByName("ns3::TcpClassicRecovery")));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(iw));
    Config::SetDefault("ns3::TcpSocket::InitialSlowStartThreshold", UintegerValue(window * SEGMENT));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 * window * SEGMENT));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(window * SEGMENT));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(3)));
    Config::SetDefault("ns3::TcpSocket::ConnCount", UintegerValue(1000000));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1000000));
    Config::SetDefault("ns3::TcpSocket::TcpNoDelay", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::ReTxThreshold", UintegerValue(3));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(minrto)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(10)));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue("Off"));
    Config::SetDefault("ns3::TcpSocketState::EnablePacing", BooleanValue(false));

    NodeContainer nodes(2);
    InternetStackHelper internet;
    internet.SetIpv6StackInstall(false);
    internet.Install(nodes);
    PointToPointHelper link;
    link.SetChannelAttribute("Delay", TimeValue(Seconds(rtt / 2)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(std::to_string(buffer) + "p"));
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate) * 8 * (SEGMENT + HEADERS + PPP))));
    NetDeviceContainer devices = link.Install(nodes);
    devices.Get(1)->SetAttribute("DataRate", StringValue("10Gbps"));
    DynamicCast<PointToPointNetDevice>(devices.Get(1))
        ->GetQueue()
        ->SetAttribute("MaxSize", StringValue("1000000p"));
    if (loss > 0)
    {
        Ptr<RateErrorModel> errors = CreateObject<RateErrorModel>();
        errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        errors->SetRate(loss);
        devices.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
        errors->AssignStreams(1);
    }
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    TrafficControlHelper none;
    none.Uninstall(devices);

    constexpr uint16_t PORT = 5000;
    Ptr<Socket> listener = Socket::CreateSocket(nodes.Get(1), TcpSocketFactory::GetTypeId());
    NS_ABORT_MSG_IF(listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT)) != 0, "bind");
    NS_ABORT_MSG_IF(listener->Listen() != 0, "listen");
    listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(), MakeCallback(&Accepted));

    Ptr<UniformRandomVariable> uniform = CreateObject<UniformRandomVariable>();
    uniform->SetStream(2);
    std::vector<Ptr<Flow>> all;
    for (uint32_t i = 0; i < flows; ++i)
    {
        Ptr<Socket> socket = Socket::CreateSocket(nodes.Get(0), TcpSocketFactory::GetTypeId());
        all.push_back(Create<Flow>(socket, InetSocketAddress(interfaces.GetAddress(1), PORT), uniform->GetValue(0, rtt)));
    }

    Simulator::Stop(Seconds(duration));
    Simulator::Run();

    uint64_t acked = 0;
    uint64_t sent = 0;
    uint64_t retransmitted = 0;
    uint64_t timeouts = 0;
    uint64_t recoveries = 0;
    uint64_t died = 0;
    for (const auto& f : all)
    {
        acked += f->AckedSegments();
        sent += f->sent;
        retransmitted += f->retransmitted;
        timeouts += f->timeouts;
        recoveries += f->recoveries;
        died += f->died;
    }
    std::cout.precision(12);
    std::cout << "{\"cc\": \"" << cc << "\", \"flows\": " << flows << ", \"loss\": " << loss << ", \"seed\": " << seed
              << ", \"duration\": " << duration << ", \"rate\": " << rate << ", \"buffer\": " << buffer
              << ", \"rtt\": " << rtt << ", \"window\": " << window << ", \"minrto\": " << minrto << ", \"iw\": " << iw
              << ", \"total_acked_segments\": " << acked << ", \"goodput_segments_per_s\": " << acked / duration
              << ", \"total_sent_packets\": " << sent << ", \"total_retransmitted_packets\": " << retransmitted
              << ", \"total_timeouts\": " << timeouts << ", \"total_recoveries\": " << recoveries
              << ", \"connections_that_died\": " << died
              << ", \"acked_segments\": " << List(all, [](const auto& f) { return f->AckedSegments(); })
              << ", \"retransmitted_packets\": " << List(all, [](const auto& f) { return f->retransmitted; })
              << ", \"timeouts\": " << List(all, [](const auto& f) { return f->timeouts; })
              << ", \"start_s\": " << List(all, [](const auto& f) { return f->start; }) << "}" << std::endl;
    Simulator::Destroy();
    return 0;
}
