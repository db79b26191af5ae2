//! A link that changes with time as it was recorded: rate, delay and loss by the clock.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use careof_base::{DataRate, Duration, Instant, Probability};

use crate::jitter::nanos;
use crate::serialiser::NANOBITS;

/// Bits of one opportunity to deliver: a packet of 1500 bytes, as Mahimahi's traces mean it (Netravali and others,
/// "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015, section 2).
const OPPORTUNITY_BITS: u64 = 12_000;

const OPPORTUNITY: u128 = OPPORTUNITY_BITS as u128 * NANOBITS as u128;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// How long a series of a single row takes until it repeats: of no account, as it is the same throughout.
const LENGTH_OF_ONE_ROW: u64 = NANOBITS;

/// What a link does by the clock: its rate, its delay, its loss, or some of these. It repeats at its end.
///
/// Its time zero is the link's ([`Instant::ZERO`]), or [a later point](Self::starting_at) of it. It goes on while the link
/// is down. It is shared by its copies.
///
/// The rate comes in one of two forms:
///
/// - A series of rates, each of which holds until the next. While it is zero what is being sent stands still.
/// - Opportunities to deliver, as Mahimahi's `mm-link` has them: at each of them 1500 bytes leave at once, framing
///   included. What a packet leaves of one, the packets behind it use; a packet that finds too little left of one goes on
///   with the next. What is left when nothing waits is gone, and so are opportunities at which nothing waits.
#[derive(Clone, Debug)]
pub struct Trace {
    data: Arc<Data>,
    /// Where in it the link begins, in nanoseconds.
    start: u64,
}

#[derive(Debug, PartialEq)]
struct Data {
    /// Until it repeats, in nanoseconds, above zero.
    period: u64,
    /// When each row begins, from zero and rising.
    rows: Box<[u64]>,
    rates: Option<Rates>,
    /// By row, in nanoseconds.
    delays: Option<Box<[u64]>>,
    /// By row.
    losses: Option<Box<[Probability]>>,
}

/// Work is counted in nanobits: what a rate in bit/s does in a nanosecond.
#[derive(Debug, PartialEq)]
enum Rates {
    Series {
        /// By row, in bit/s.
        rates: Box<[u64]>,
        /// By row, the work done before it.
        before: Box<[u128]>,
        /// The work of all rows.
        total: u128,
    },
    /// In milliseconds, never falling; the last is the period.
    Opportunities(Box<[u32]>),
}

/// A stretch of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TraceRow {
    /// When it begins. It ends where the next one begins, and the last is as long as the one before it.
    pub at: Duration,
    /// Of the serialiser. `None` is that of the row before; in the first row the trace has no rates.
    pub rate: Option<DataRate>,
    /// One-way delay, in the same way.
    pub delay: Option<Duration>,
    /// Probability of losing a packet, each independently, in the same way.
    pub loss: Option<Probability>,
}

/// Why rows or opportunities are no trace. Rows are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// There is nothing in it.
    #[error("it is empty")]
    Empty,
    /// The first row does not begin at zero.
    #[error("the first row begins after zero; what holds until then is not said")]
    BeginsLate,
    /// A row does not begin after the one before it, or an opportunity comes before the one before it.
    #[error("it goes back in time")]
    OutOfOrder {
        /// Which one.
        row: usize,
    },
    /// All opportunities are at zero: it would repeat in no time.
    #[error("it ends at zero, so that it would repeat in no time")]
    NoLength,
    /// A column begins in the middle.
    #[error("its column has no value in the first row")]
    LateColumn {
        /// The first row with a value.
        row: usize,
    },
}

impl Trace {
    /// Opportunities to deliver 1500 bytes, in milliseconds from the beginning. The last of them is where it repeats.
    ///
    /// # Errors
    /// [`TraceError`], if it would take no time or goes back in time.
    pub fn of_opportunities(millis: Vec<u32>) -> Result<Self, TraceError> {
        let last = *millis.last().ok_or(TraceError::Empty)?;
        if let Some(row) = (1..millis.len()).find(|row| millis[*row] < millis[*row - 1]) {
            return Err(TraceError::OutOfOrder { row });
        }
        if last == 0 {
            return Err(TraceError::NoLength);
        }
        Ok(Self::new(Data {
            period: u64::from(last) * NANOS_PER_MILLI,
            rows: Box::new([0]),
            rates: Some(Rates::Opportunities(millis.into())),
            delays: None,
            losses: None,
        }))
    }

    /// A series of stretches.
    ///
    /// # Errors
    /// [`TraceError`], if the rows do not follow one another from zero, or a column begins in the middle.
    pub fn of_rows(rows: &[TraceRow]) -> Result<Self, TraceError> {
        let starts: Box<[u64]> = rows.iter().map(|row| nanos(row.at)).collect();
        match starts.first() {
            None => return Err(TraceError::Empty),
            Some(0) => {}
            Some(_) => return Err(TraceError::BeginsLate),
        }
        if let Some(row) = (1..starts.len()).find(|row| starts[*row] <= starts[*row - 1]) {
            return Err(TraceError::OutOfOrder { row });
        }
        let period = match *starts {
            [.., before, last] => last.saturating_add(last - before),
            _ => LENGTH_OF_ONE_ROW,
        };
        let rates = column(rows, |row| row.rate.map(DataRate::bits_per_second))?;
        let mut data = Data {
            period,
            rates: None,
            delays: column(rows, |row| row.delay.map(nanos))?,
            losses: column(rows, |row| row.loss)?,
            rows: starts,
        };
        data.rates = rates.map(|rates| {
            let mut total = 0_u128;
            let before = (0..rates.len())
                .map(|row| {
                    let before = total;
                    total = total.saturating_add(u128::from(rates[row]) * u128::from(data.length(row)));
                    before
                })
                .collect();
            Rates::Series { rates, before, total }
        });
        Ok(Self::new(data))
    }

    fn new(data: Data) -> Self {
        Self { data: Arc::new(data), start: 0 }
    }

    /// The same, for a link that begins at `start` of it.
    #[must_use]
    pub fn starting_at(self, start: Duration) -> Self {
        // Where it begins matters modulo its length alone, and that keeps sums small.
        Self { start: nanos(start) % self.data.period, data: self.data }
    }

    /// Where in it the link begins; less than its [length](Self::period).
    #[must_use]
    pub fn start(&self) -> Duration {
        Duration::from_nanos(self.start)
    }

    /// After how long it repeats.
    #[must_use]
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.data.period)
    }

    /// Its rate in the mean, if it has rates; zero only where it never carries anything.
    #[must_use]
    pub fn mean_rate(&self) -> Option<DataRate> {
        let work = self.data.rates.as_ref()?.total();
        let rate = u64::try_from(work / u128::from(self.data.period)).unwrap_or(u64::MAX - 1);
        Some(DataRate::from_bits_per_second(if work == 0 { 0 } else { rate.max(1) }))
    }

    /// The delay that is not exceeded half of the time, if it has delays.
    #[must_use]
    pub fn median_delay(&self) -> Option<Duration> {
        let delays = self.data.delays.as_ref()?;
        let mut order: Vec<usize> = (0..delays.len()).collect();
        order.sort_by_key(|row| delays[*row]);
        let mut passed = 0;
        let median = order.into_iter().find(|row| {
            passed += u128::from(self.data.length(*row));
            2 * passed >= u128::from(self.data.period)
        });
        median.map(|row| Duration::from_nanos(delays[row]))
    }

    /// The least of its delays, if it has any.
    #[must_use]
    pub fn least_delay(&self) -> Option<Duration> {
        self.data.delays.as_ref()?.iter().min().copied().map(Duration::from_nanos)
    }

    /// Its loss in the mean over time, if it has losses.
    #[must_use]
    pub fn mean_loss(&self) -> Option<Probability> {
        let losses = self.data.losses.as_ref()?;
        let share = |row: usize| self.data.length(row) as f64 / self.data.period as f64;
        let mean: f64 = (0..losses.len()).map(|row| losses[row].get() * share(row)).sum();
        Probability::new(mean.clamp(0.0, 1.0)).ok()
    }

    /// Bits that it lets through between [`Instant::ZERO`] and `until`, if it has rates.
    #[must_use]
    pub fn bits_by(&self, until: Instant) -> Option<u128> {
        self.has_rates().then(|| (self.work_by(until) - self.work_by(Instant::ZERO)) / u128::from(NANOBITS))
    }

    /// Whether it says how fast the link is.
    pub(crate) fn has_rates(&self) -> bool {
        self.data.rates.is_some()
    }

    /// Whether it carries anything at all, ever.
    pub(crate) fn carries(&self) -> bool {
        self.data.rates.as_ref().is_some_and(|rates| rates.total() > 0)
    }

    /// The delay of a packet whose last bit is sent at `at`, in nanoseconds.
    pub(crate) fn delay_at(&self, at: Instant) -> Option<u64> {
        self.data.delays.as_ref().map(|delays| delays[self.row_at(at)])
    }

    /// The loss that a packet meets which begins to be sent at `at`.
    pub(crate) fn loss_at(&self, at: Instant) -> Option<Probability> {
        self.data.losses.as_ref().map(|losses| losses[self.row_at(at)])
    }

    fn row_at(&self, at: Instant) -> usize {
        self.data.row_of(self.time_of(at) % self.data.period)
    }

    /// The trace's own time at an instant of the link's.
    fn time_of(&self, at: Instant) -> u64 {
        at.as_nanos().saturating_add(self.start)
    }

    /// Work that can have been done by `at` since the trace's own zero; opportunities at `at` are gone.
    pub(crate) fn work_by(&self, at: Instant) -> u128 {
        let time = self.time_of(at);
        let (cycle, within) = (u128::from(time / self.data.period), time % self.data.period);
        match &self.data.rates {
            None => 0,
            Some(Rates::Series { rates, before, total }) => {
                let row = self.data.row_of(within);
                let since = u128::from(within - self.data.rows[row]);
                cycle.saturating_mul(*total) + before[row] + u128::from(rates[row]) * since
            }
            Some(Rates::Opportunities(millis)) => {
                let passed = millis.partition_point(|at| u64::from(*at) * NANOS_PER_MILLI <= within);
                (cycle * millis.len() as u128 + passed as u128) * OPPORTUNITY
            }
        }
    }

    /// When `work`, counted as [`Self::work_by`] does, is done, not before `earliest`; [`Instant::MAX`] for never.
    ///
    /// With a series what is left of it at that instant is less than what a nanosecond does; see
    /// [`Serialiser`](crate::serialiser::Serialiser).
    pub(crate) fn done(&self, work: u128, earliest: Instant) -> Instant {
        let Some(rates) = self.data.rates.as_ref().filter(|rates| rates.total() > 0) else {
            return Instant::MAX;
        };
        if work == 0 {
            return earliest;
        }
        // An end falls into the cycle in which it is reached, not where the next one begins.
        let (cycle, within) = match rates {
            Rates::Series { rates, before, total } => {
                let cycle = (work - 1) / total;
                let rest = work - cycle * total;
                // The row in which it is reached is none of rate zero.
                let row = before.partition_point(|before| *before < rest) - 1;
                (cycle, u128::from(self.data.rows[row]) + (rest - before[row]) / u128::from(rates[row]))
            }
            Rates::Opportunities(millis) => {
                let number = (work - 1) / OPPORTUNITY;
                let (cycle, index) = (number / millis.len() as u128, number % millis.len() as u128);
                (cycle, u128::from(millis[index as usize]) * u128::from(NANOS_PER_MILLI))
            }
        };
        let time = cycle.saturating_mul(u128::from(self.data.period)).saturating_add(within);
        let at = time.saturating_sub(u128::from(self.start));
        earliest.max(Instant::from_nanos(u64::try_from(at).unwrap_or(u64::MAX)))
    }
}

impl PartialEq for Trace {
    fn eq(&self, other: &Self) -> bool {
        self.start == other.start && (Arc::ptr_eq(&self.data, &other.data) || self.data == other.data)
    }
}

impl Data {
    /// The row that holds at a time below the period.
    fn row_of(&self, within: u64) -> usize {
        // The first one begins at zero.
        self.rows.partition_point(|begin| *begin <= within) - 1
    }

    /// How long a row holds.
    fn length(&self, row: usize) -> u64 {
        self.rows.get(row + 1).copied().unwrap_or(self.period) - self.rows[row]
    }
}

impl Rates {
    /// The work of one period.
    fn total(&self) -> u128 {
        match self {
            Self::Series { total, .. } => *total,
            Self::Opportunities(millis) => millis.len() as u128 * OPPORTUNITY,
        }
    }
}

/// A column of a series, gaps filled with the value before; `None` where the first row has no value.
fn column<T: Copy>(
    rows: &[TraceRow],
    value: impl Fn(&TraceRow) -> Option<T>,
) -> Result<Option<Box<[T]>>, TraceError> {
    let Some(mut last) = rows.first().and_then(&value) else {
        return match rows.iter().position(|row| value(row).is_some()) {
            Some(row) => Err(TraceError::LateColumn { row }),
            None => Ok(None),
        };
    };
    let filled = rows.iter().map(|row| {
        last = value(row).unwrap_or(last);
        last
    });
    Ok(Some(filled.collect()))
}
