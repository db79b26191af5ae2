// The bench cases in ns-3 (3.37): the same work, counted at every device that receives a packet.
//
// usage: ns3 dumbbell|tree FLOWS SECONDS
// Prints one line of JSON: packet_hops, events, simulating_cpu_s (CPU seconds from the first microsecond on to the last
// event).
//
// As in scenarios/bench: NewReno with its classic recovery (ns-3's default is PRR), without SACK and timestamps,
// 1500-byte packets, an ACK for every second one or after 200 ms, drop-tail queues in the devices. Nothing runs that the
// case does not need: no queue discipline and no flow control between it and the device, no IPv6, no trace but the one that
// counts the hops, no metadata of packets, and no checksums, which ns-3 leaves out unless it is asked (ours computes none
// either). Routes are exact matches in a hash table of our own, because ns-3's static routing walks through a list. All else
// is the default, the event list too: none of ns-3's others was faster. What differs in the tree: ns-3 has no Mobile IP, so the
// home agent routes to the mobile node's own address, without a tunnel and without signalling; a radio channel cannot be
// moved, so a mobile node has one to each station, made when it first comes there. A handover takes the routes over
// the old one away, at the routers and at the mobile node; 160 ms later (100 ms of interruption, 60 ms for a
// registration) they lead over the new one.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <ctime>
#include <iostream>
#include <unordered_map>
#include <vector>

using namespace ns3;

namespace
{

uint64_t g_hops = 0;

void
Received(Ptr<const Packet>)
{
    ++g_hops;
}

// Exact matches, and an interface for everything else.
class HostRouting : public Ipv4RoutingProtocol
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("HostRouting").SetParent<Ipv4RoutingProtocol>().AddConstructor<HostRouting>();
        return tid;
    }

    void Set(Ipv4Address host, int interface)
    {
        m_hosts[host.Get()] = interface;
    }

    void Remove(Ipv4Address host)
    {
        m_hosts.erase(host.Get());
    }

    void SetDefault(int interface)
    {
        m_default = interface;
    }

    Ptr<Ipv4Route> RouteOutput(Ptr<Packet>, const Ipv4Header& header, Ptr<NetDevice>, Socket::SocketErrno& error) override
    {
        Ptr<Ipv4Route> route = Find(header.GetDestination());
        error = route ? Socket::ERROR_NOTERROR : Socket::ERROR_NOROUTETOHOST;
        return route;
    }

    bool RouteInput(Ptr<const Packet> packet,
                    const Ipv4Header& header,
                    Ptr<const NetDevice> device,
                    UnicastForwardCallback forward,
                    MulticastForwardCallback,
                    LocalDeliverCallback deliver,
                    ErrorCallback error) override
    {
        uint32_t interface = m_ipv4->GetInterfaceForDevice(device);
        if (m_ipv4->IsDestinationAddress(header.GetDestination(), interface))
        {
            deliver(packet, header, interface);
            return true;
        }
        Ptr<Ipv4Route> route = Find(header.GetDestination());
        if (!route)
        {
            error(packet, header, Socket::ERROR_NOROUTETOHOST);
            return false;
        }
        forward(route, packet, header);
        return true;
    }

    void NotifyInterfaceUp(uint32_t) override
    {
    }

    void NotifyInterfaceDown(uint32_t) override
    {
    }

    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override
    {
    }

    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override
    {
    }

    void SetIpv4(Ptr<Ipv4> ipv4) override
    {
        m_ipv4 = ipv4;
    }

    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override
    {
    }

  private:
    Ptr<Ipv4Route> Find(Ipv4Address destination)
    {
        auto found = m_hosts.find(destination.Get());
        int interface = found == m_hosts.end() ? m_default : found->second;
        if (interface < 0)
        {
            return nullptr;
        }
        // A link has two ends: the next hop needs no address.
        Ptr<Ipv4Route> route = Create<Ipv4Route>();
        route->SetDestination(destination);
        route->SetGateway(Ipv4Address::GetZero());
        route->SetSource(m_ipv4->GetAddress(interface, 0).GetLocal());
        route->SetOutputDevice(m_ipv4->GetNetDevice(interface));
        return route;
    }

    Ptr<Ipv4> m_ipv4;
    std::unordered_map<uint32_t, int> m_hosts;
    int m_default = -1;
};

class HostRoutingHelper : public Ipv4RoutingHelper
{
  public:
    HostRoutingHelper* Copy() const override
    {
        return new HostRoutingHelper(*this);
    }

    Ptr<Ipv4RoutingProtocol> Create(Ptr<Node>) const override
    {
        return CreateObject<HostRouting>();
    }
};

struct Host
{
    Ptr<Node> node;
    Ipv4Address address;
};

uint32_t g_next_address = Ipv4Address("10.0.0.1").Get();

Host
MakeHost(InternetStackHelper& stack)
{
    Ptr<Node> node = CreateObject<Node>();
    stack.Install(node);
    return {node, Ipv4Address(g_next_address++)};
}

Ptr<HostRouting>
Routes(const Host& host)
{
    return DynamicCast<HostRouting>(host.node->GetObject<Ipv4>()->GetRoutingProtocol());
}

struct Ends
{
    int from;
    int to;
};

// A link; returns the interfaces at its ends. A node has the same address on each of them.
Ends
Connect(const Host& a, const Host& b, const std::string& rate, const std::string& delay, uint32_t queue)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetChannelAttribute("Delay", StringValue(delay));
    link.DisableFlowControl();
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, queue)));
    NetDeviceContainer devices = link.Install(a.node, b.node);
    int interfaces[2];
    const Host* hosts[2] = {&a, &b};
    for (int i = 0; i < 2; ++i)
    {
        Ptr<Ipv4> ipv4 = hosts[i]->node->GetObject<Ipv4>();
        devices.Get(i)->TraceConnectWithoutContext("PhyRxEnd", MakeCallback(&Received));
        interfaces[i] = ipv4->AddInterface(devices.Get(i));
        ipv4->AddAddress(interfaces[i], Ipv4InterfaceAddress(hosts[i]->address, Ipv4Mask::GetOnes()));
        ipv4->SetUp(interfaces[i]);
    }
    return {interfaces[0], interfaces[1]};
}

void
Flow(const Host& from, const Host& to, uint16_t port)
{
    BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(to.address, port));
    source.SetAttribute("SendSize", UintegerValue(1460));
    source.Install(from.node).Start(Seconds(0));
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    sink.Install(to.node).Start(Seconds(0));
}

void
Dumbbell(InternetStackHelper& stack, int flows)
{
    Host left = MakeHost(stack);
    Host right = MakeHost(stack);
    Ends middle = Connect(left, right, flows > 10 ? "100Mbps" : "10Mbps", "20ms", 100);
    Routes(left)->SetDefault(middle.from);
    Routes(right)->SetDefault(middle.to);
    for (int i = 0; i < flows; ++i)
    {
        Host sender = MakeHost(stack);
        Host receiver = MakeHost(stack);
        Ends near = Connect(sender, left, "100Mbps", "5ms", 1000);
        Ends far = Connect(right, receiver, "100Mbps", "5ms", 1000);
        Routes(sender)->SetDefault(near.from);
        Routes(left)->Set(sender.address, near.to);
        Routes(right)->Set(receiver.address, far.from);
        Routes(receiver)->SetDefault(far.to);
        Flow(sender, receiver, 9);
    }
}

struct Tree
{
    Host home;
    std::vector<Host> core;
    std::vector<Host> area;
    std::vector<Host> stations;
    // Interface of the node above that leads down to it.
    std::vector<int> to_core;
    std::vector<int> to_area;
    std::vector<int> to_station;
};

Tree g_tree;

// n-th of `over` things, from 0, shared out in blocks among `of`.
int
Block(int n, int of, int over)
{
    return n * of / over;
}

struct Mobile
{
    Host host;
    int station;
    // Links that were made, by station.
    std::unordered_map<int, Ends> radio;
};

std::vector<Mobile> g_mobiles;

void
Arrive(int which, int station)
{
    Mobile& mobile = g_mobiles[which];
    mobile.station = station;
    if (mobile.radio.find(station) == mobile.radio.end())
    {
        mobile.radio[station] = Connect(g_tree.stations[station], mobile.host, "512kbps", "10ms", 50);
    }
    Ends radio = mobile.radio[station];
    int area = Block(station, 7, 21);
    int core = Block(area, 3, 7);
    Routes(mobile.host)->SetDefault(radio.to);
    Routes(g_tree.stations[station])->Set(mobile.host.address, radio.from);
    Routes(g_tree.area[area])->Set(mobile.host.address, g_tree.to_station[station]);
    Routes(g_tree.core[core])->Set(mobile.host.address, g_tree.to_area[area]);
    Routes(g_tree.home)->Set(mobile.host.address, g_tree.to_core[core]);
}

void
Handover(int which)
{
    Mobile& mobile = g_mobiles[which];
    Routes(g_tree.stations[mobile.station])->Remove(mobile.host.address);
    Routes(mobile.host)->SetDefault(-1);
    Simulator::Schedule(MilliSeconds(160), &Arrive, which, (mobile.station + 1) % 21);
    Simulator::Schedule(Seconds(10), &Handover, which);
}

void
MakeTree(InternetStackHelper& stack, int flows)
{
    const std::string rate = "10Gbps";
    const std::string delay = "2ms";
    Host correspondent = MakeHost(stack);
    g_tree.home = MakeHost(stack);
    Ends first = Connect(correspondent, g_tree.home, rate, delay, 1000);
    Routes(correspondent)->SetDefault(first.from);
    Routes(g_tree.home)->Set(correspondent.address, first.to);
    auto below = [&](const Host& parent, std::vector<Host>& children, std::vector<int>& down) {
        children.push_back(MakeHost(stack));
        Ends ends = Connect(parent, children.back(), rate, delay, 1000);
        down.push_back(ends.from);
        Routes(children.back())->Set(correspondent.address, ends.to);
    };
    for (int c = 0; c < 3; ++c)
    {
        below(g_tree.home, g_tree.core, g_tree.to_core);
    }
    for (int a = 0; a < 7; ++a)
    {
        below(g_tree.core[Block(a, 3, 7)], g_tree.area, g_tree.to_area);
    }
    for (int s = 0; s < 21; ++s)
    {
        below(g_tree.area[Block(s, 7, 21)], g_tree.stations, g_tree.to_station);
    }
    g_mobiles.resize(flows);
    for (int i = 0; i < flows; ++i)
    {
        g_mobiles[i].host = MakeHost(stack);
        Arrive(i, i % 21);
        Flow(correspondent, g_mobiles[i].host, 9);
        Simulator::Schedule(Seconds(10.0 * (i + 1) / flows), &Handover, i);
    }
}

double
CpuSeconds()
{
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double g_begun = 0;

void
Begin()
{
    g_begun = CpuSeconds();
}

} // namespace

int
main(int argc, char* argv[])
{
    if (argc != 4)
    {
        std::cerr << "usage: ns3 dumbbell|tree FLOWS SECONDS" << std::endl;
        return 2;
    }
    const std::string shape = argv[1];
    const int flows = std::stoi(argv[2]);
    const double seconds = std::stod(argv[3]);
    // In the tree the window is 11 segments. It is the sender's buffer that holds it to that: where the receiver's window
    // does, ns-3.37 ends with a segmentation fault after a timeout (TcpSocketBase::SendDataPacket sends no item).
    const uint32_t window = shape == "tree" ? 11 * 1460 : 1 << 20;

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1460));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(3));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(window));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 20));

    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.SetRoutingHelper(HostRoutingHelper());
    if (shape == "tree")
    {
        MakeTree(stack, flows);
    }
    else
    {
        Dumbbell(stack, flows);
    }
    Simulator::Schedule(MicroSeconds(1), &Begin);
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    const double simulating = CpuSeconds() - g_begun;
    std::cout << "{\"packet_hops\": " << g_hops << ", \"events\": " << Simulator::GetEventCount()
              << ", \"simulating_cpu_s\": " << simulating << "}" << std::endl;
    Simulator::Destroy();
    return 0;
}
