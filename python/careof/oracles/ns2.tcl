# One TCP sender, one receiver and a link between them in ns-2 (2.35): prints what the sender hands to the link.
#
# usage: ns ns2.tcl KEY VALUE [KEY VALUE ...], the keys of `option` below; times in seconds, rates in bit/s. A key
# with a slash sets a variable of ns-2's agents: Agent/TCP/tcpTick_ 0.1.
# Output: ns-2's trace of the link's entry, and of the sender's window where `watch` is 1.

array set option {
    agent Agent/TCP  sink Agent/TCPSink
    rate 10e6  delay 0.05  queue 1000
    segments 200  size 1000  window 40  initial_window 1
    drops {}  outages {}  changes {}
    until 60  watch 0
}
array set option $argv

# The clock of RFC 6298, finer than the default's 10 ms, and no limited transmit unless it is asked for.
Agent/TCP set tcpTick_ 0.001
Agent/TCP set minrto_ 1.0
Agent/TCP set maxrto_ 60
Agent/TCP set rtxcur_init_ 1.0
Agent/TCP set singledup_ 0
Agent/TCP set packetSize_ $option(size)
Agent/TCP set window_ $option(window)
Agent/TCP set windowInit_ $option(initial_window)
# RFC 6582 section 3.2 step 3, the first choice: no burst at the end of a recovery.
Agent/TCP/Newreno set exit_recovery_fix_ 1
# Vegas counts no headers and knows no SYN: its first packet is full-sized, and so is the SYN of our side then.
if {$option(agent) eq "Agent/TCP/Vegas"} {
    Agent/TCP set packetSize_ [expr {$option(size) + 40}]
    incr option(segments)
}
# What is sent after the delay fell does not overtake what was sent before.
DelayLink set avoidReordering_ true
foreach {key value} [array get option */*] {
    set at [string last / $key]
    [string range $key 0 [expr {$at - 1}]] set [string range $key [expr {$at + 1}] end] $value
}

set ns [new Simulator]
set output [open /dev/stdout w]
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right $option(rate) $option(delay) DropTail
# ns-2 counts the packet that is arriving, and we those that wait.
$ns queue-limit $left $right [expr {$option(queue) + 1}]
$ns queue-limit $right $left [expr {$option(queue) + 1}]

# Losses come before the queue: they take no time of the link.
foreach way [list [$ns link $left $right] [$ns link $right $left]] {
    set outage [new ErrorModel]
    $outage unit pkt
    $outage set rate_ 0
    $outage ranvar [new RandomVariable/Uniform]
    $way errormodule $outage
    foreach {from until} $option(outages) {
        $ns at $from "$outage set rate_ 1"
        $ns at $until "$outage set rate_ 0"
    }
    foreach {at rate delay} $option(changes) {
        $ns at $at "[$way link] set bandwidth_ $rate; [$way link] set delay_ $delay"
    }
}
# The list counts what enters, the SYN being 0.
if {[llength $option(drops)]} {
    set list [new ErrorModel/List]
    $list unit pkt
    $list droplist [join $option(drops) " "]
    [$ns link $left $right] errormodule $list
}
$ns trace-queue $left $right $output

set tcp [new $option(agent)]
set sink [new $option(sink)]
$ns attach-agent $left $tcp
$ns attach-agent $right $sink
$ns connect $tcp $sink
if {$option(watch)} {
    $tcp attach $output
    $tcp trace cwnd_
    $tcp trace ssthresh_
}
$ns at 0 "$tcp advanceby $option(segments)"
$ns at $option(until) { close $output; exit 0 }
$ns run
