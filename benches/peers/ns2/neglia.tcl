# Satellite and terrestrial TCP Vegas at one bottleneck (the preset neglia), for the ns-2 simulator.
#
#   ns neglia.tcl ?-name value ...?        e.g.  ns neglia.tcl -seed 1 -geo 264.1
#
# Topology
#
#   A (satellite flows)   --(access, 10 ms)--\                        /--(exit, geo)---- S
#                                             R1 --(2 Mbit/s, 10 ms)-- R2
#   B (terrestrial flows) --(access, 10 ms)--/                        \--(exit, 10 ms)-- T
#
# The satellite flows start within the first second, the terrestrial ones within a second after 2000 s. The last
# line of standard output is one JSON object with shares of the bottleneck in per cent: of the satellite alone
# (200-2000 s), and of both classes beside each other (2200-4000 s).
#
#   -size      bytes of a packet on the wire. TCP/Vegas adds no header and sends no SYN, so packetSize_ is the same.
#   -queue     packets that may wait at each link, not counting the one being transmitted: limit_ is one more.
#   -geo       one-way delay of the satellite's link, ms; -access, -exit: rate of the links before R1 and after R2.
#   -overhead  overhead_: each transmission waits for a random time of up to this, s. 0 is ns-2's default.
#   -tick      tcpTick_, s: the retransmission timer is a whole number of ticks, or minrto_ if that is longer.
#   -minrto    minrto_, s.

array set opt {
    flows    15
    seed     1
    size     1000
    queue    50
    window   20
    geo      263.7
    access   20Mb
    exit     20Mb
    overhead 0
    tick     0.01
    minrto   0.2
}

foreach {key value} $argv {
    set name [string range $key 1 end]
    if {[string index $key 0] ne "-" || ![info exists opt($name)]} {
        puts stderr "neglia.tcl: unknown parameter '$key' (known: [lsort [array names opt]])"
        exit 2
    }
    set opt($name) $value
}
if {[llength $argv] % 2} {
    puts stderr "neglia.tcl: parameter '[lindex $argv end]' has no value"
    exit 2
}

Agent/TCP set packetSize_ $opt(size)
Agent/TCP set window_ $opt(window)
Agent/TCP set overhead_ $opt(overhead)
Agent/TCP set tcpTick_ $opt(tick)
Agent/TCP set minrto_ $opt(minrto)
Agent/TCPSink set packetSize_ 40

set ns [new Simulator]
foreach node {A B R1 R2 S T} { set $node [$ns node] }
foreach {from to rate delay} [list $A $R1 $opt(access) 10ms  $B $R1 $opt(access) 10ms  $R1 $R2 2Mb 10ms \
        $R2 $S $opt(exit) $opt(geo)ms  $R2 $T $opt(exit) 10ms] {
    $ns duplex-link $from $to $rate $delay DropTail
    $ns queue-limit $from $to [expr {$opt(queue) + 1}]
    $ns queue-limit $to $from [expr {$opt(queue) + 1}]
}

# overhead_ draws from the default generator: one substream per seed, as for the start times.
set startrng [new RNG]
for {set i 0} {$i < $opt(seed)} {incr i} {
    $startrng next-substream
    $defaultRNG next-substream
}

for {set i 0} {$i < 2 * $opt(flows)} {incr i} {
    set ground [expr {$i >= $opt(flows)}]
    set tcp($i) [new Agent/TCP/Vegas]
    set sink [new Agent/TCPSink]
    $tcp($i) set fid_ $i
    $ns attach-agent [expr {$ground ? $B : $A}] $tcp($i)
    $ns attach-agent [expr {$ground ? $T : $S}] $sink
    $ns connect $tcp($i) $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($i)
    $ns at [expr {2000.0 * $ground + [$startrng uniform 0.0 1.0]}] "$ftp start"
}

# Sums of a variable over each class.
proc sums {variable} {
    global opt tcp
    set sums {0 0}
    for {set i 0} {$i < 2 * $opt(flows)} {incr i} {
        set class [expr {$i >= $opt(flows)}]
        lset sums $class [expr {[lindex $sums $class] + [$tcp($i) set $variable]}]
    }
    return $sums
}
proc mark {time} { global acked; set acked($time) [sums ack_] }
proc share {class from to} {
    global opt acked
    set packets [expr {[lindex $acked($to) $class] - [lindex $acked($from) $class]}]
    return [format %.3f [expr {100.0 * $packets * $opt(size) * 8 / 2e6 / ($to - $from)}]]
}
proc finish {} {
    mark 4000
    puts "{\"satellite_alone\": [share 0 200 2000], \"satellite\": [share 0 2200 4000],\
        \"terrestrial\": [share 1 2200 4000], \"timeouts\": \[[join [sums nrexmit_] {, }]\],\
        \"retransmitted_packets\": \[[join [sums nrexmitpack_] {, }]\]}"
    exit 0
}
foreach time {200 2000 2200} { $ns at $time "mark $time" }
$ns at 4000 finish
$ns run
