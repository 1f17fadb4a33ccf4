# Long bulk transfers over one geostationary path, for the ns-2 simulator.
#
#   ns geo_bulk.tcl ?-name value ...?        e.g.  ns geo_bulk.tcl -flows 20 -variant TCP/Sack1 -seed 1
#
# Topology
#
#   s0 --\
#   s1 ---- A ==(rate, drop-tail queue, rtt/2, random loss)==> B   (all sinks)
#   ...  /    <=========(fast, loss-free, rtt/2)==============
#   sN --/
#
# The last line of standard output is one JSON object.
#
# What the parameters mean in ns-2 terms (check_semantics.py checks -rate, -buffer, -loss, -rtt and -packets against a trace):
#   -rate     packets per second of 1000-byte packets on the wire. ns-2 adds tcpip_base_hdr_size_
#             (40) to packetSize_ for every packet but the first, so packetSize_ is 960 here.
#             The first packet of a connection is a 40-byte SYN (syn_ is true by default); it has
#             sequence number 0, so ack_ is the number of data segments acknowledged in order.
#             TCP/Vegas adds no header and sends no SYN (its output() is its own): packetSize_ is 1000
#             there, and ack_ is one short.
#   -buffer   packets that may wait, NOT counting the one being transmitted. ns-2's DropTail drops
#             when length+1 >= limit_, that is, it holds limit_-1 packets; limit_ is buffer+1 here.
#   -queue    DropTail, or RED with the parameters -minth, -maxth, -maxp and -weight: gentle, in packets, without
#             marks. wait_ is off, so that the probability grows with the packets since the last signal as in the
#             paper of Floyd and Jacobson. RED drops when length >= limit_, so limit_ is buffer there.
#   -loss     probability that a packet that left the queue and crossed the link is discarded. The
#             error model follows the delay element of the link, so a lost packet has used its
#             share of the link rate. (ns-2's lossmodel would sit before the queue.) It acts on
#             the 40-byte SYN too.
#   -rtt      propagation only, seconds; serialisation (1/rate) and queueing come on top.
#   -minrto   lower bound of the retransmission timer, seconds; -iw: initial window, segments;
#             -limited: limited transmit (singledup_). 0.2, 2 and 1 are the defaults of ns-2.35.
#   -delack   1: the receiver delays acknowledgements (every second segment, at most 100 ms).
#   -variant TFRC: no TCP. packetSize_ is 1000, without the header that useHeaders_ would add; what arrived is
#             bytes_ of the sink, in packets of 1000 bytes. -minrto: least timeout in the equation; -iw, -limited, -delack
#             and -window have no effect.
#   -access   1: each source on its own node behind a 10 Gbit/s link, 0: all agents on node A.
#   -lean     1: keep only the packet headers in use (ns-2's usual way to run faster and smaller).
#   -packets  > 0: every flow sends this many segments and stops (0: unlimited).

array set opt {
    flows     20
    variant   TCP/Sack1
    loss      1e-3
    seed      1
    duration  550
    rate      1300
    buffer    50
    rtt       0.55
    window    64
    minrto    1.0
    iw        1
    limited   0
    delack    0
    access    1
    lean      0
    scheduler Calendar
    packets   0
    queue     DropTail
    minth     5
    maxth     15
    maxp      0.1
    weight    0.002
    trace     ""
}

foreach {key value} $argv {
    set name [string range $key 1 end]
    if {[string index $key 0] ne "-" || ![info exists opt($name)]} {
        puts stderr "geo_bulk.tcl: unknown parameter '$key' (known: [lsort [array names opt]])"
        exit 2
    }
    set opt($name) $value
}
if {[llength $argv] % 2} {
    puts stderr "geo_bulk.tcl: parameter '[lindex $argv end]' has no value"
    exit 2
}
if {[lsearch -exact {TCP TCP/Reno TCP/Newreno TCP/Sack1 TCP/Vegas TFRC} $opt(variant)] < 0} {
    puts stderr "geo_bulk.tcl: unknown variant '$opt(variant)'"
    exit 2
}
set sinkclass [expr {$opt(variant) eq "TCP/Sack1" ? "TCPSink/Sack1" : "TCPSink"}]
if {$opt(delack)} { append sinkclass /DelAck }
set tfrc [expr {$opt(variant) eq "TFRC"}]
if {$tfrc} { set sinkclass TFRCSink }

Agent/TCP set packetSize_ [expr {$opt(variant) eq "TCP/Vegas" ? 1000 : 960}]
Agent/TCP set tcpip_base_hdr_size_ 40
Agent/TCP set useHeaders_ true
Agent/TCP set window_ $opt(window)
Agent/TCP set windowInit_ $opt(iw)
Agent/TCP set windowInitOption_ 1
Agent/TCP set minrto_ $opt(minrto)
Agent/TCP set singledup_ $opt(limited)
Agent/TCP set overhead_ 0
Agent/TCPSink set packetSize_ 40
Agent/TFRC set packetSize_ 1000
Agent/TFRC set useHeaders_ false
Agent/TFRC set minrto_ $opt(minrto)

if {$opt(lean)} {
    remove-all-packet-headers
    add-packet-header IP TCP Flags TFRC TFRC_ACK
}

set ns [new Simulator]
$ns use-scheduler $opt(scheduler)
if {$opt(trace) ne ""} {
    set tracefile [open $opt(trace) w]
    $ns trace-all $tracefile
}

Queue/RED set thresh_ $opt(minth)
Queue/RED set maxthresh_ $opt(maxth)
Queue/RED set linterm_ [expr {1.0 / $opt(maxp)}]
Queue/RED set q_weight_ $opt(weight)
Queue/RED set mean_pktsize_ 1000
Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ false
Queue/RED set setbit_ false
Queue/RED set gentle_ true
Queue/RED set wait_ false

set A [$ns node]
set B [$ns node]
set half [expr {$opt(rtt) / 2.0}]
$ns simplex-link $A $B [expr {$opt(rate) * 8000.0}] $half $opt(queue)
$ns simplex-link $B $A 10Gb $half DropTail
$ns queue-limit $A $B [expr {int($opt(buffer)) + ($opt(queue) eq "DropTail")}]
$ns queue-limit $B $A 1000000

# Two streams of ns-2's generator, one substream per seed: the start times of a seed do not depend
# on the loss rate. (Giving small integers to "$rng seed" instead yields correlated sequences.)
set startrng [new RNG]
set lossrng [new RNG]
for {set i 0} {$i < $opt(seed)} {incr i} {
    $startrng next-substream
    $lossrng next-substream
}

if {$opt(loss) > 0} {
    set ranvar [new RandomVariable/Uniform]
    $ranvar use-rng $lossrng
    $ranvar set min_ 0.0
    $ranvar set max_ 1.0
    set em [new ErrorModel]
    $em unit pkt
    $em set rate_ $opt(loss)
    $em ranvar $ranvar
    # Without a drop target ns-2's error model only marks the packet, and TCP ignores the mark.
    $em drop-target [new Agent/Null]
    [$ns link $A $B] install-error $em
}

for {set i 0} {$i < $opt(flows)} {incr i} {
    if {$opt(access)} {
        set src [$ns node]
        $ns duplex-link $src $A 10Gb 0ms DropTail
        $ns queue-limit $src $A 1000000
        $ns queue-limit $A $src 1000000
    } else {
        set src $A
    }
    set tcp($i) [new Agent/$opt(variant)]
    set sink [new Agent/$sinkclass]
    set sinks($i) $sink
    $tcp($i) set fid_ $i
    $ns attach-agent $src $tcp($i)
    $ns attach-agent $B $sink
    $ns connect $tcp($i) $sink
    set start($i) [$startrng uniform 0.0 $opt(rtt)]
    if {$tfrc} {
        $ns at $start($i) "$tcp($i) start"
        continue
    }
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    if {$opt(packets) > 0} {
        # "produce n" sends the sequence numbers 0 .. n; 0 is the SYN
        $ns at $start($i) "$ftp produce [expr {int($opt(packets))}]"
    } else {
        $ns at $start($i) "$ftp start"
    }
}

proc finish {} {
    global opt tcp sinks start tfrc tracefile
    set acked {}; set rexmit {}; set timeouts {}; set sent {}; set cuts {}; set starts {}
    set total 0
    set allsent 0
    set allrexmit 0
    set alltimeouts 0
    for {set i 0} {$i < $opt(flows)} {incr i} {
        if {$tfrc} {
            set a [expr {int([$sinks($i) set bytes_] / 1000)}]
            lappend acked $a
            lappend sent [$tcp($i) set ndatapack_]
            foreach list {rexmit timeouts cuts} { lappend $list 0 }
            lappend starts [format %.6f $start($i)]
            incr total $a
            incr allsent [$tcp($i) set ndatapack_]
            continue
        }
        set a [$tcp($i) set ack_]
        if {$a < 0} { set a 0 }
        lappend acked $a
        lappend sent [$tcp($i) set ndatapack_]
        lappend rexmit [$tcp($i) set nrexmitpack_]
        lappend timeouts [$tcp($i) set nrexmit_]
        lappend cuts [$tcp($i) set ncwndcuts_]
        lappend starts [format %.6f $start($i)]
        incr total $a
        incr allsent [$tcp($i) set ndatapack_]
        incr allrexmit [$tcp($i) set nrexmitpack_]
        incr alltimeouts [$tcp($i) set nrexmit_]
    }
    if {$opt(trace) ne ""} { close $tracefile }
    set fields {}
    foreach key {variant scheduler} { lappend fields "\"$key\": \"$opt($key)\"" }
    foreach key {flows loss seed duration rate buffer rtt window minrto iw limited delack access lean packets} {
        lappend fields "\"$key\": $opt($key)"
    }
    lappend fields "\"total_acked_segments\": $total"
    lappend fields "\"goodput_segments_per_s\": [format %.4f [expr {double($total) / $opt(duration)}]]"
    lappend fields "\"total_sent_packets\": $allsent"
    lappend fields "\"total_retransmitted_packets\": $allrexmit"
    lappend fields "\"total_timeouts\": $alltimeouts"
    foreach {key values} [list acked_segments $acked sent_packets $sent \
            retransmitted_packets $rexmit timeouts $timeouts window_cuts $cuts start_s $starts] {
        lappend fields "\"$key\": \[[join $values {, }]\]"
    }
    puts "{[join $fields {, }]}"
    exit 0
}

$ns at $opt(duration) finish
$ns run
