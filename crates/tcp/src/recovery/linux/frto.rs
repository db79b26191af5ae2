//! The repair of a timeout, and whether it was spurious (F-RTO, RFC 5682, with and without selective
//! acknowledgements; Linux 6.1, `tcp_process_loss`): what was sent only once arrives although everything was presumed
//! lost.

use careof_base::Instant;

use super::ack::{Again, News};
use super::undo;
use crate::sender::{Ack, Sender};

pub(super) fn on_ack(
    sender: &mut Sender,
    now: Instant,
    ack: &Ack<'_>,
    duplicates: u32,
    news: &News,
) -> Again {
    let recovered = !sender.linux.una.is_before(sender.linux.high_seq);
    if news.una_advanced && undo::in_loss(sender, now, ack, false) {
        return Again::Nothing;
    }
    if sender.linux.frto {
        // Step 3.b.
        if news.original_delivered && undo::in_loss(sender, now, ack, true) {
            return Again::Nothing;
        }
        let nxt = sender.queue.end();
        if nxt.is_after(sender.linux.high_seq) {
            if news.sacked || duplicates > 0 {
                // Step 3.a: the loss was real.
                sender.linux.frto = false;
            }
        } else if news.una_advanced && !recovered {
            // Step 2.b: new data, if there is any that may leave.
            sender.linux.high_seq = nxt;
            if sender.has_unsent() && sender.window_edge().is_after(nxt) {
                return Again::New;
            }
            sender.linux.frto = false;
        }
    }
    if recovered {
        undo::at_end(sender, now, ack);
        return Again::Nothing;
    }
    if !sender.linux.sack {
        // Duplicates that new data causes stand for segments delivered, and clock out repetitions.
        if sender.queue.end().is_after(sender.linux.high_seq) && duplicates > 0 {
            sender.linux.count_duplicates(&sender.queue, duplicates);
        } else if news.una_advanced {
            sender.linux.sacked_out = 0;
        }
    }
    Again::Lost
}
