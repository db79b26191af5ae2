# The bench cases in ns-2 (2.35): the same work, counted at its ends.
#
# usage: ns ns2.tcl dumbbell|tree FLOWS SECONDS
# Prints a line of JSON - packet_hops, simulating_cpu_s (CPU seconds from the first microsecond on to the last event), drops -
# and then what is left in the scheduler: ns-2 numbers its events, so that the highest number there is the count of all.
#
# As in scenarios/bench: NewReno, 1500-byte data packets, an ACK for every second one or after 200 ms, drop-tail queues.
# What differs in the tree: ns-2's Mobile IP does without tunnels for wired routers, so the home agent routes to the
# mobile node's own address, without 20 bytes of tunnel and without signalling. A handover moves the mobile node's radio
# link to the next station: at once no route leads over it, what waits for it is dropped; 160 ms later (100 ms of
# interruption, 60 ms for a registration) the routes of all routers on the way lead to the new station.

lassign $argv shape flows seconds

Agent/TCP set packetSize_ 1460
Agent/TCP set minrto_ 1.0
Agent/TCP set singledup_ 0
Agent/TCP set windowInit_ 3
Agent/TCPSink/DelAck set interval_ 200ms

# A packet of ns-2 has room for the headers of every protocol there is, and all of it is cleared for each one.
remove-all-packet-headers
add-packet-header Flags IP TCP RTP

set ns [new Simulator]
set drops [new Agent/LossMonitor]
set lost_acks [new Agent/LossMonitor]

# Drops of a link are counted where they end: that costs nothing a packet that is not dropped.
proc connect {a b rate delay queue} {
    global ns drops
    $ns duplex-link $a $b $rate $delay DropTail
    foreach {from to} [list $a $b $b $a] {
        $ns queue-limit $from $to [expr {$queue + 1}]
        set link [$ns link $from $to]
        [$link set drophead_] target $drops
    }
}

proc flow {from to window} {
    global ns senders
    set tcp [new Agent/TCP/Newreno]
    $tcp set window_ $window
    set sink [new Agent/TCPSink/DelAck]
    $ns attach-agent $from $tcp
    $ns attach-agent $to $sink
    $ns connect $tcp $sink
    $ns at 0 "$tcp send -1"
    lappend senders $tcp
}

proc dumbbell {flows} {
    global ns
    set left [$ns node]
    set right [$ns node]
    connect $left $right [expr {$flows > 10 ? 100 : 10}]Mb 20ms 100
    for {set i 0} {$i < $flows} {incr i} {
        set sender [$ns node]
        set receiver [$ns node]
        connect $sender $left 100Mb 5ms 1000
        connect $right $receiver 100Mb 5ms 1000
        flow $sender $receiver 718
    }
    # Hops of a data packet, and of one that was dropped: at the second link.
    return {3 1}
}

# ---- the tree. No routing protocol: whoever moves writes its routes, as a registration does.

proc route {node destination link} {
    $node add-route [$destination id] [$link head]
}

proc block {n of over} {
    return [expr {($n - 1) * $of / $over + 1}]
}

# One way of a mobile node's radio: a queue, a rate, a delay, and whatever stands at its end.
proc radio {drops} {
    set queue [new Queue/DropTail]
    $queue set limit_ 51
    set link [new DelayLink]
    $link set bandwidth_ 512kb
    $link set delay_ 10ms
    $queue target $link
    $queue drop-target $drops
    $link target $drops
    return [list $queue $link]
}

proc leave {mobile} {
    global station stations mobiles down up drops lost_acks
    set node $mobiles($mobile)
    $stations($station($mobile)) add-route [$node id] $drops
    lassign $down($mobile) queue link
    $queue reset
    $link target $drops
    lassign $up($mobile) queue link
    $queue reset
    $link target $lost_acks
}

proc arrive {mobile at} {
    global ns station stations mobiles down up home core area
    set node $mobiles($mobile)
    set id [$node id]
    set station($mobile) $at
    set a [block $at 7 21]
    set c [block $a 3 7]
    lassign $down($mobile) queue link
    $link target [$node entry]
    $stations($at) add-route $id $queue
    lassign $up($mobile) queue link
    $link target [$stations($at) entry]
    route $area($a) $node [$ns link $area($a) $stations($at)]
    route $core($c) $node [$ns link $core($c) $area($a)]
    route $home $node [$ns link $home $core($c)]
}

proc handover {mobile} {
    global ns station
    leave $mobile
    set next [expr {$station($mobile) % 21 + 1}]
    $ns at [expr {[$ns now] + 0.16}] "arrive $mobile $next"
    $ns at [expr {[$ns now] + 10}] "handover $mobile"
}

proc tree {flows} {
    global ns home core area stations mobiles station down up drops lost_acks
    $ns rtproto Manual
    set correspondent [$ns node]
    set home [$ns node]
    connect $correspondent $home 10000Mb 2ms 1000
    set upward {}
    for {set c 1} {$c <= 3} {incr c} {
        set core($c) [$ns node]
        connect $home $core($c) 10000Mb 2ms 1000
        lappend upward $core($c) $home
    }
    for {set a 1} {$a <= 7} {incr a} {
        set area($a) [$ns node]
        set parent $core([block $a 3 7])
        connect $parent $area($a) 10000Mb 2ms 1000
        lappend upward $area($a) $parent
    }
    for {set s 1} {$s <= 21} {incr s} {
        set stations($s) [$ns node]
        set parent $area([block $s 7 21])
        connect $parent $stations($s) 10000Mb 2ms 1000
        lappend upward $stations($s) $parent
    }
    route $home $correspondent [$ns link $home $correspondent]
    foreach {node parent} $upward { route $node $correspondent [$ns link $node $parent] }
    for {set i 1} {$i <= $flows} {incr i} {
        set mobiles($i) [$ns node]
        set down($i) [radio $drops]
        set up($i) [radio $lost_acks]
        $mobiles($i) add-route [$correspondent id] [lindex $up($i) 0]
        route $correspondent $mobiles($i) [$ns link $correspondent $home]
        arrive $i [expr {($i - 1) % 21 + 1}]
        flow $correspondent $mobiles($i) 11
        $ns at [expr {10.0 * $i / $flows}] "handover $i"
    }
    # A packet is dropped at the last link.
    return {5 4}
}

proc cpu_s {} {
    set file [open /proc/self/stat]
    set fields [lrange [lindex [split [read $file] ")"] end] 11 12]
    close $file
    return [expr {([lindex $fields 0] + [lindex $fields 1]) / 100.0}]
}

proc finish {hops} {
    global ns senders drops begun
    set simulating [expr {[cpu_s] - $begun}]
    set data 0
    set acks 0
    foreach tcp $senders {
        incr data [$tcp set ndatapack_]
        incr acks [$tcp set nackpack_]
    }
    set lost [$drops set npkts_]
    lassign $hops whole cut
    puts [format {{"packet_hops": %d, "simulating_cpu_s": %.2f, "drops": %d}} \
        [expr {($data - $lost) * $whole + $lost * $cut + $acks * $whole}] $simulating $lost]
    flush stdout
    [$ns set scheduler_] dumpq
}

set hops [$shape $flows]
$ns at 1e-6 { set begun [cpu_s] }
$ns at $seconds { $ns halt }
$ns run
finish $hops
