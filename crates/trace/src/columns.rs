//! A batch of events as columns, in the layout of Apache Arrow.
//!
//! Buffers follow the Arrow columnar format (version 1.4): little endian, validity as a bitmap whose least
//! significant bit is the first row, strings as offsets into one run of bytes. A `Vec` here is a buffer there.

use crate::event::{Body, Event, EventKind, INFINITE, NO_PACKET, NO_SEQ, NO_TIME};
use crate::log::{Detail, Details, Names};
use crate::schema::{COLUMNS, ColumnName, ColumnType};

/// A list of strings in Arrow's layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strings {
    offsets: Vec<i32>,
    bytes: Vec<u8>,
}

impl Default for Strings {
    fn default() -> Self {
        Self { offsets: vec![0], bytes: Vec::new() }
    }
}

impl Strings {
    fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        // A dictionary of more than 2 GiB would need a batch of as many bytes of text.
        self.offsets.push(i32::try_from(self.bytes.len()).unwrap_or(i32::MAX));
    }

    fn from_names(names: &[String]) -> Self {
        let mut strings = Self::default();
        for name in names {
            strings.push(name);
        }
        strings
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where each begins in [`bytes`](Self::bytes), and where the last ends: one more than there are strings.
    #[must_use]
    pub fn offsets(&self) -> &[i32] {
        &self.offsets
    }

    /// [`offsets`](Self::offsets) as an Arrow buffer.
    #[must_use]
    pub fn offsets_buffer(&self) -> Vec<u8> {
        self.offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect()
    }

    /// All of them, one after the other, in UTF-8.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The string at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&str> {
        let begin = usize::try_from(*self.offsets.get(index)?).ok()?;
        let end = usize::try_from(*self.offsets.get(index.checked_add(1)?)?).ok()?;
        str::from_utf8(self.bytes.get(begin..end)?).ok()
    }

    /// All of them in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

/// The values of a column; what stands in a row without a value is not to be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnData {
    /// Signed 64 bit.
    Int64(Vec<i64>),
    /// Unsigned 64 bit.
    UInt64(Vec<u64>),
    /// Unsigned 32 bit.
    UInt32(Vec<u32>),
    /// A bitmap, least significant bit first.
    Boolean(Vec<u8>),
    /// Indices into `values`.
    Dictionary {
        /// One a row.
        indices: Vec<i32>,
        /// What they stand for.
        values: Strings,
    },
}

/// One column of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    column: ColumnName,
    rows: usize,
    validity: Option<Vec<u8>>,
    null_count: usize,
    data: ColumnData,
}

fn bit(bitmap: &[u8], row: usize) -> bool {
    bitmap.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 1)
}

fn set_bit(bitmap: &mut [u8], row: usize) {
    if let Some(byte) = bitmap.get_mut(row / 8) {
        *byte |= 1 << (row % 8);
    }
}

fn write_all<const WIDTH: usize>(out: &mut [u8], values: impl Iterator<Item = [u8; WIDTH]>) {
    for (place, value) in out.chunks_exact_mut(WIDTH).zip(values) {
        place.copy_from_slice(&value);
    }
}

impl Column {
    /// Which column it is.
    #[must_use]
    pub const fn column(&self) -> ColumnName {
        self.column
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.column.name()
    }

    /// How it is stored.
    #[must_use]
    pub fn column_type(&self) -> ColumnType {
        self.column.spec().column_type
    }

    /// Rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no row.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Rows without a value.
    #[must_use]
    pub const fn null_count(&self) -> usize {
        self.null_count
    }

    /// Which rows have a value, as a bitmap; `None` when all have.
    #[must_use]
    pub fn validity(&self) -> Option<&[u8]> {
        self.validity.as_deref()
    }

    /// The values.
    #[must_use]
    pub const fn data(&self) -> &ColumnData {
        &self.data
    }

    /// What a dictionary's indices stand for.
    #[must_use]
    pub const fn dictionary(&self) -> Option<&Strings> {
        match &self.data {
            ColumnData::Dictionary { values, .. } => Some(values),
            _ => None,
        }
    }

    /// Bytes of the data buffer.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        match &self.data {
            ColumnData::Int64(values) => values.len() * 8,
            ColumnData::UInt64(values) => values.len() * 8,
            ColumnData::UInt32(values) => values.len() * 4,
            ColumnData::Boolean(bitmap) => bitmap.len(),
            ColumnData::Dictionary { indices, .. } => indices.len() * 4,
        }
    }

    /// Writes the data buffer (a dictionary's indices) to `out`, which should be
    /// [`buffer_len`](Self::buffer_len) bytes long.
    pub fn write_buffer(&self, out: &mut [u8]) {
        match &self.data {
            ColumnData::Int64(values) => write_all(out, values.iter().map(|value| value.to_le_bytes())),
            ColumnData::UInt64(values) => write_all(out, values.iter().map(|value| value.to_le_bytes())),
            ColumnData::UInt32(values) => write_all(out, values.iter().map(|value| value.to_le_bytes())),
            ColumnData::Boolean(bitmap) => write_all(out, bitmap.iter().map(|byte| [*byte])),
            ColumnData::Dictionary { indices, .. } => {
                write_all(out, indices.iter().map(|index| index.to_le_bytes()));
            }
        }
    }

    /// The data buffer (a dictionary's indices).
    #[must_use]
    pub fn buffer(&self) -> Vec<u8> {
        let mut out = vec![0; self.buffer_len()];
        self.write_buffer(&mut out);
        out
    }

    /// Whether `row` has a value.
    #[must_use]
    pub fn is_valid(&self, row: usize) -> bool {
        row < self.rows && self.validity.as_ref().is_none_or(|bitmap| bit(bitmap, row))
    }

    /// The number in `row`, of whatever type.
    #[must_use]
    pub fn number(&self, row: usize) -> Option<i128> {
        if !self.is_valid(row) {
            return None;
        }
        match &self.data {
            ColumnData::Int64(values) => values.get(row).copied().map(i128::from),
            ColumnData::UInt64(values) => values.get(row).copied().map(i128::from),
            ColumnData::UInt32(values) => values.get(row).copied().map(i128::from),
            ColumnData::Boolean(_) | ColumnData::Dictionary { .. } => None,
        }
    }

    /// The truth value in `row`.
    #[must_use]
    pub fn boolean(&self, row: usize) -> Option<bool> {
        match &self.data {
            ColumnData::Boolean(bitmap) if self.is_valid(row) => Some(bit(bitmap, row)),
            _ => None,
        }
    }

    /// The text in `row`.
    #[must_use]
    pub fn text(&self, row: usize) -> Option<&str> {
        match &self.data {
            ColumnData::Dictionary { indices, values } if self.is_valid(row) => {
                values.get(usize::try_from(*indices.get(row)?).ok()?)
            }
            _ => None,
        }
    }
}

/// A batch of events as columns, one for each of [`COLUMNS`] and in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    rows: usize,
    columns: Vec<Column>,
}

impl Columns {
    /// Events.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// The columns in order.
    pub fn iter(&self) -> core::slice::Iter<'_, Column> {
        self.columns.iter()
    }

    /// One column.
    #[must_use]
    pub fn column(&self, column: ColumnName) -> &Column {
        // `of` makes one column for each name, in order.
        &self.columns[column as usize]
    }

    /// The column called `name`.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name() == name)
    }

    /// Converts `events`, already sorted.
    pub(crate) fn of(events: &[Event], names: &Names, details: &Details) -> Self {
        let mut table = Table::new(events.len(), names, details);
        for (row, event) in events.iter().enumerate() {
            table.set(row, event);
        }
        table.finish()
    }
}

impl<'a> IntoIterator for &'a Columns {
    type Item = &'a Column;
    type IntoIter = core::slice::Iter<'a, Column>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A column being filled: all rows are there from the beginning and absent until they are set, so an event costs
/// only the columns it has.
struct Values<T> {
    values: Vec<T>,
    validity: Vec<u8>,
}

impl<T: Copy + Default> Values<T> {
    fn new(rows: usize) -> Self {
        Self { values: vec![T::default(); rows], validity: vec![0; rows.div_ceil(8)] }
    }

    #[inline]
    fn set(&mut self, row: usize, value: T) {
        if let Some(place) = self.values.get_mut(row) {
            *place = value;
            set_bit(&mut self.validity, row);
        }
    }
}

struct Bits {
    values: Vec<u8>,
    validity: Vec<u8>,
}

/// A dictionary column whose strings come up as the rows do.
struct Words {
    indices: Values<i32>,
    /// Compared by address first: the same constant is nearly always the same address.
    known: Vec<&'static str>,
}

impl Words {
    fn new(rows: usize) -> Self {
        Self { indices: Values::new(rows), known: Vec::new() }
    }

    fn set(&mut self, row: usize, word: &'static str) {
        let same_place = self.known.iter().position(|known| core::ptr::eq(*known, word));
        let index = same_place.or_else(|| self.known.iter().position(|known| *known == word));
        let index = index.unwrap_or_else(|| {
            self.known.push(word);
            self.known.len() - 1
        });
        self.indices.set(row, i32::try_from(index).unwrap_or(i32::MAX));
    }

    fn into_strings(self) -> (Values<i32>, Strings) {
        let mut strings = Strings::default();
        for word in &self.known {
            strings.push(word);
        }
        (self.indices, strings)
    }
}

/// Control bits in the order tcpdump prints them.
fn flag_letters(flags: u8) -> String {
    const LETTERS: [(u8, char); 8] = [
        (0x02, 'S'),
        (0x01, 'F'),
        (0x04, 'R'),
        (0x08, 'P'),
        (0x20, 'U'),
        (0x40, 'E'),
        (0x80, 'W'),
        (0x10, '.'),
    ];
    let mut text: String =
        LETTERS.iter().filter(|(mask, _)| flags & mask != 0).map(|(_, letter)| letter).collect();
    if text.is_empty() {
        text.push_str("none");
    }
    text
}

const ACK: u8 = 0x10;

struct Table<'a> {
    rows: usize,
    names: &'a Names,
    details: &'a Details,
    time_ns: Vec<i64>,
    kind: Vec<i32>,
    node: Values<i32>,
    link: Values<i32>,
    flow: Values<i32>,
    message: Words,
    cause: Words,
    packet: Values<u64>,
    size_bytes: Values<u32>,
    seq: Values<i64>,
    ack: Values<i64>,
    len_bytes: Values<u32>,
    window_bytes: Values<u32>,
    flags: Values<i32>,
    flag_index: [i32; 256],
    flag_texts: Strings,
    retransmission: Bits,
    cwnd_bytes: Values<u32>,
    ssthresh_bytes: Values<u32>,
    flight_bytes: Values<u32>,
    srtt_ns: Values<i64>,
    rttvar_ns: Values<i64>,
    rto_ns: Values<i64>,
    queue_packets: Values<u32>,
    queue_bytes: Values<u64>,
    delivered_bytes: Values<u64>,
    assist: Words,
    assist_packets: Values<u32>,
    assist_bytes: Values<u64>,
    of_packet: Values<u64>,
    detail: Values<i32>,
    detail_index: Vec<i32>,
    detail_texts: Strings,
}

fn set_name(column: &mut Values<i32>, row: usize, id: u16, names: &[String]) {
    if usize::from(id) < names.len() {
        column.set(row, i32::from(id));
    }
}

fn set_span(column: &mut Values<i64>, row: usize, nanos: i64) {
    if nanos != NO_TIME {
        column.set(row, nanos);
    }
}

impl<'a> Table<'a> {
    fn new(rows: usize, names: &'a Names, details: &'a Details) -> Self {
        Self {
            rows,
            names,
            details,
            time_ns: Vec::with_capacity(rows),
            kind: Vec::with_capacity(rows),
            node: Values::new(rows),
            link: Values::new(rows),
            flow: Values::new(rows),
            message: Words::new(rows),
            cause: Words::new(rows),
            packet: Values::new(rows),
            size_bytes: Values::new(rows),
            seq: Values::new(rows),
            ack: Values::new(rows),
            len_bytes: Values::new(rows),
            window_bytes: Values::new(rows),
            flags: Values::new(rows),
            flag_index: [-1; 256],
            flag_texts: Strings::default(),
            retransmission: Bits { values: vec![0; rows.div_ceil(8)], validity: vec![0; rows.div_ceil(8)] },
            cwnd_bytes: Values::new(rows),
            ssthresh_bytes: Values::new(rows),
            flight_bytes: Values::new(rows),
            srtt_ns: Values::new(rows),
            rttvar_ns: Values::new(rows),
            rto_ns: Values::new(rows),
            queue_packets: Values::new(rows),
            queue_bytes: Values::new(rows),
            delivered_bytes: Values::new(rows),
            assist: Words::new(rows),
            assist_packets: Values::new(rows),
            assist_bytes: Values::new(rows),
            of_packet: Values::new(rows),
            detail: Values::new(rows),
            detail_index: vec![-1; details.len()],
            detail_texts: Strings::default(),
        }
    }

    #[inline]
    fn set(&mut self, row: usize, event: &Event) {
        self.time_ns.push(i64::try_from(event.time.as_nanos()).unwrap_or(i64::MAX));
        self.kind.push(event.kind as i32);
        set_name(&mut self.node, row, event.node, &self.names.nodes);
        set_name(&mut self.link, row, event.link, &self.names.links);
        set_name(&mut self.flow, row, event.flow, &self.names.flows);
        match event.body {
            Body::Segment(segment) => {
                self.set_packet(row, segment.packet, segment.size_bytes);
                self.seq.set(row, segment.seq);
                if segment.flags & ACK != 0 {
                    self.ack.set(row, segment.ack);
                }
                self.len_bytes.set(row, segment.len_bytes);
                self.window_bytes.set(row, segment.window_bytes);
                self.set_flags(row, segment.flags);
                set_bit(&mut self.retransmission.validity, row);
                if segment.retransmission {
                    set_bit(&mut self.retransmission.values, row);
                }
            }
            Body::State { seq, cwnd, ssthresh, flight, srtt, rttvar, rto } => {
                if seq != NO_SEQ {
                    self.seq.set(row, seq);
                }
                self.cwnd_bytes.set(row, cwnd);
                if ssthresh != INFINITE {
                    self.ssthresh_bytes.set(row, ssthresh);
                }
                self.flight_bytes.set(row, flight);
                set_span(&mut self.srtt_ns, row, srtt);
                set_span(&mut self.rttvar_ns, row, rttvar);
                set_span(&mut self.rto_ns, row, rto);
            }
            Body::Delivered { bytes } => self.delivered_bytes.set(row, bytes),
            Body::Packet(packet) => {
                self.set_packet(row, packet.packet, packet.size_bytes);
                self.queue_packets.set(row, packet.queue_packets);
                self.queue_bytes.set(row, packet.queue_bytes);
            }
            Body::Dropped { packet, cause } => {
                self.set_packet(row, packet.packet, packet.size_bytes);
                self.queue_packets.set(row, packet.queue_packets);
                self.queue_bytes.set(row, packet.queue_bytes);
                self.cause.set(row, cause);
            }
            Body::DroppedAtNode { packet, size_bytes, cause } => {
                self.set_packet(row, packet, size_bytes);
                self.cause.set(row, cause);
            }
            Body::Message(message) => {
                self.message.set(row, message.message);
                self.set_packet(row, message.packet, message.size_bytes);
                self.set_detail(row, message.detail);
            }
            Body::Cause { cause, detail } => {
                self.cause.set(row, cause);
                self.set_detail(row, detail);
            }
            Body::Flow { detail } => self.set_detail(row, detail),
            Body::Assist { assist, what, packets, bytes } => {
                self.assist.set(row, assist);
                self.cause.set(row, what);
                self.assist_packets.set(row, packets);
                self.assist_bytes.set(row, bytes);
            }
            Body::Derived { packet, size_bytes, of_packet, cause } => {
                self.set_packet(row, packet, size_bytes);
                self.of_packet.set(row, of_packet);
                self.cause.set(row, cause);
            }
        }
    }

    #[inline]
    fn set_packet(&mut self, row: usize, packet: u64, size_bytes: u32) {
        if packet != NO_PACKET {
            self.packet.set(row, packet);
        }
        self.size_bytes.set(row, size_bytes);
    }

    #[inline]
    fn set_flags(&mut self, row: usize, flags: u8) {
        let index = &mut self.flag_index[usize::from(flags)];
        if *index < 0 {
            // At most 256 of them.
            *index = self.flag_texts.len() as i32;
            self.flag_texts.push(&flag_letters(flags));
        }
        self.flags.set(row, *index);
    }

    fn set_detail(&mut self, row: usize, detail: Detail) {
        let Some((place, text)) = self.details.get(detail) else { return };
        let Some(index) = self.detail_index.get_mut(place) else { return };
        if *index < 0 {
            *index = i32::try_from(self.detail_texts.len()).unwrap_or(i32::MAX);
            self.detail_texts.push(text);
        }
        self.detail.set(row, *index);
    }

    fn finish(self) -> Columns {
        let rows = self.rows;
        let (message, messages) = self.message.into_strings();
        let (cause, causes) = self.cause.into_strings();
        let (assist, assists) = self.assist.into_strings();
        let mut kinds = Strings::default();
        for kind in EventKind::ALL {
            kinds.push(kind.name());
        }
        let always = |column, data| Column { column, rows, validity: None, null_count: 0, data };
        let columns = vec![
            always(ColumnName::TimeNs, ColumnData::Int64(self.time_ns)),
            always(ColumnName::Kind, ColumnData::Dictionary { indices: self.kind, values: kinds }),
            dictionary(ColumnName::Node, rows, self.node, Strings::from_names(&self.names.nodes)),
            dictionary(ColumnName::Link, rows, self.link, Strings::from_names(&self.names.links)),
            dictionary(ColumnName::Flow, rows, self.flow, Strings::from_names(&self.names.flows)),
            dictionary(ColumnName::Message, rows, message, messages),
            dictionary(ColumnName::Cause, rows, cause, causes),
            numbers(ColumnName::Packet, rows, self.packet, ColumnData::UInt64),
            numbers(ColumnName::SizeBytes, rows, self.size_bytes, ColumnData::UInt32),
            numbers(ColumnName::Seq, rows, self.seq, ColumnData::Int64),
            numbers(ColumnName::Ack, rows, self.ack, ColumnData::Int64),
            numbers(ColumnName::LenBytes, rows, self.len_bytes, ColumnData::UInt32),
            numbers(ColumnName::WindowBytes, rows, self.window_bytes, ColumnData::UInt32),
            dictionary(ColumnName::Flags, rows, self.flags, self.flag_texts),
            nullable(
                ColumnName::Retransmission,
                rows,
                self.retransmission.validity,
                ColumnData::Boolean(self.retransmission.values),
            ),
            numbers(ColumnName::CwndBytes, rows, self.cwnd_bytes, ColumnData::UInt32),
            numbers(ColumnName::SsthreshBytes, rows, self.ssthresh_bytes, ColumnData::UInt32),
            numbers(ColumnName::FlightBytes, rows, self.flight_bytes, ColumnData::UInt32),
            numbers(ColumnName::SrttNs, rows, self.srtt_ns, ColumnData::Int64),
            numbers(ColumnName::RttvarNs, rows, self.rttvar_ns, ColumnData::Int64),
            numbers(ColumnName::RtoNs, rows, self.rto_ns, ColumnData::Int64),
            numbers(ColumnName::QueuePackets, rows, self.queue_packets, ColumnData::UInt32),
            numbers(ColumnName::QueueBytes, rows, self.queue_bytes, ColumnData::UInt64),
            numbers(ColumnName::DeliveredBytes, rows, self.delivered_bytes, ColumnData::UInt64),
            dictionary(ColumnName::Assist, rows, assist, assists),
            numbers(ColumnName::AssistPackets, rows, self.assist_packets, ColumnData::UInt32),
            numbers(ColumnName::AssistBytes, rows, self.assist_bytes, ColumnData::UInt64),
            numbers(ColumnName::OfPacket, rows, self.of_packet, ColumnData::UInt64),
            dictionary(ColumnName::Detail, rows, self.detail, self.detail_texts),
        ];
        debug_assert!(columns.iter().zip(COLUMNS).all(|(column, spec)| column.column == spec.column));
        Columns { rows, columns }
    }
}

fn nullable(column: ColumnName, rows: usize, validity: Vec<u8>, data: ColumnData) -> Column {
    let present: usize = validity.iter().map(|byte| byte.count_ones() as usize).sum();
    Column { column, rows, validity: Some(validity), null_count: rows.saturating_sub(present), data }
}

fn numbers<T>(column: ColumnName, rows: usize, values: Values<T>, data: fn(Vec<T>) -> ColumnData) -> Column {
    nullable(column, rows, values.validity, data(values.values))
}

fn dictionary(column: ColumnName, rows: usize, indices: Values<i32>, values: Strings) -> Column {
    let data = ColumnData::Dictionary { indices: indices.values, values };
    nullable(column, rows, indices.validity, data)
}
