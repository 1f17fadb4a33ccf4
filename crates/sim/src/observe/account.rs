//! Compares the judgements of senders with the true causes of losses.

use crate::observe::tap::Tap;
use crate::sim::Sim;
use skyhaul_tcp::CongestionReport;

impl<R: Tap> Sim<R> {
    /// Attributes a judgement to its true cause.
    #[inline(never)]
    pub(crate) fn account_for(&mut self, index: u32, congestion_report: &CongestionReport) {
        let flow = &self.flows[index as usize];
        let una = flow.agent.sender().map_or(congestion_report.offset, |s| s.una());
        let account = &mut self.records[index as usize].history().cuts;
        self.net.witness.truth.judge(index, flow.generation, (flow.header, una), congestion_report, account);
    }

    /// A TCP sender is about to look for losses: its oracle, if there is one, tells it of the packets lost until now.
    #[cold]
    pub(crate) fn inform(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        // A rate-controlled receiver takes its news itself, when data arrives.
        if flow.agent.rated().is_some() {
            return;
        }
        let news = self.net.witness.truth.news(index, flow.generation, flow.header);
        let history = self.records[index as usize].history.as_mut();
        let Some(oracle) = history.and_then(|h| h.oracle.as_mut()) else { return };
        for (seq, len, cause) in news {
            flow.agent.tell_loss(seq, len, oracle.says_error(cause));
        }
    }

    /// Compares a sender's loss verdicts with the true causes.
    #[cold]
    pub(crate) fn take_verdicts(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let verdicts = flow.agent.take_verdicts();
        let Some(una) = flow.agent.sender().map(|s| s.una()) else { return };
        for verdict in verdicts {
            let account = &mut self.records[index as usize].history().verdicts;
            self.net.witness.truth.check(index, flow.generation, (flow.header, una), &verdict, account);
        }
    }
}
