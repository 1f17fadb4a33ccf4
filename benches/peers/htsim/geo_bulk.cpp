// Greedy TCP flows over one satellite channel in htsim: the counterpart of ../ns2/geo_bulk.tcl without losses.
//
//     g++ -O3 -std=c++11 -I SIM geo_bulk.cpp SIM/libhtsim.a -o geo_bulk     SIM: the folder `sim` of an htsim checkout
//     ./geo_bulk -flows 20 -rate 1300 -rtt 0.55 -buffer 50 -window 64 -size 1000 -duration 550 -seed 1
//
// Data passes a FIFO of `buffer` packets that serves `rate` packets/s, and then half of the RTT; acknowledgements
// need the other half. htsim has no channel losses. Its TCP has no SACK and no delayed acknowledgements. The last
// line of the output is JSON, as ns-2's.

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <vector>

#include "config.h"
#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

static double parameter(int argc, char** argv, const char* name, double otherwise) {
    for (int i = 1; i + 1 < argc; i += 2)
        if (argv[i][0] == '-' && !strcmp(argv[i] + 1, name)) return atof(argv[i + 1]);
    return otherwise;
}

int main(int argc, char** argv) {
    auto get = [&](const char* name, double otherwise) { return parameter(argc, argv, name, otherwise); };
    const int flows = int(get("flows", 20)), size = int(get("size", 1000));
    const double rate = get("rate", 1300), duration = get("duration", 550);
    srandom(unsigned(get("seed", 1)));
    srand(unsigned(get("seed", 1)));

    EventList events;
    events.setEndtime(timeFromSec(duration));
    Packet::set_packet_size(size);
    Queue channel(linkspeed_bps(rate * size * 8), memFromPkt(get("buffer", 50)), events, NULL);
    Pipe out(timeFromSec(get("rtt", 0.55) / 2), events), back(timeFromSec(get("rtt", 0.55) / 2), events);
    // Expired retransmission timers are looked for at this period.
    TcpRtxTimerScanner timers(timeFromMs(100), events);

    std::vector<TcpSink*> sinks;
    for (int i = 0; i < flows; i++) {
        TcpSrc* source = new TcpSrc(NULL, NULL, events);
        TcpSink* sink = new TcpSink();
        source->_maxcwnd = uint32_t(get("window", 64)) * size;
        timers.registerTcp(*source);
        Route* forward = new Route();
        forward->push_back(&channel);
        forward->push_back(&out);
        forward->push_back(sink);
        Route* reverse = new Route();
        reverse->push_back(&back);
        reverse->push_back(source);
        source->connect(*forward, *reverse, *sink, timeFromSec(drand() * 0.5));
        sinks.push_back(sink);
    }
    while (events.doNextEvent()) {
    }
    unsigned long long delivered = 0;
    for (TcpSink* sink : sinks) delivered += sink->_cumulative_ack / size;
    std::cout << "\n{\"total_acked_segments\": " << delivered << "}" << std::endl;
    return 0;
}
