//! Services for `test` blocks from outside of the interpreter: launches, `.npy` files, printed text.

use std::sync::Mutex;

use tk_interp::print::{MOST_LINES, omitted};
use tk_interp::{Arg, Fault, Host, Memory};
use tk_ops::{DType, DTypeSet};
use tk_sema::contract::{self, HostArg, parse_cargs};
use tk_sema::eval::Bindings;
use tk_sema::hir::FnId;
use tk_syntax::{Diagnostic, FileId, Span};
use tk_tile::ElemType;

use crate::session::{Argument, Session, diagnostic, in_case, lock};
use crate::{pass, room, stored};

/// The result of a test.
#[derive(Clone, Debug, Default)]
pub struct TestOutcome {
    /// The messages of `static_print` and, if the test failed, the reason.
    pub diagnostics: Vec<Diagnostic>,
    /// The output of `print`.
    pub printed: String,
}

impl Session {
    /// Runs a test.
    pub fn test(&self, id: FnId) -> TestOutcome {
        let f = self.checked().hir.func(id);
        let (test, notes) = match self.compile(id, &Bindings::on(self.facts().target)) {
            Ok(compiled) => compiled,
            Err(diagnostics) => return TestOutcome { diagnostics, printed: String::new() },
        };
        let host = TestHost {
            session: self,
            notes: Mutex::new(notes),
            printed: Mutex::default(),
            refused: Mutex::new(vec![]),
        };
        pass::enter("interpreter");
        let ended =
            tk_interp::run_test(&test.module, test.entry, &host, &Memory::new(), &self.options(&test));
        let mut diagnostics = std::mem::take(&mut *lock(&host.notes));
        if let Err(fault) = ended {
            diagnostics.extend(host.explain(&fault, f.span));
        }
        let printed = std::mem::take(&mut *lock(&host.printed)).finish();
        TestOutcome { diagnostics, printed }
    }
}

/// The lines of a test and of its launches, up to as many as a launch may print.
#[derive(Default)]
struct Output {
    text: String,
    lines: usize,
    left_out: usize,
}

impl Output {
    fn add(&mut self, text: &str) {
        for line in text.split_inclusive('\n') {
            if self.lines < MOST_LINES {
                self.lines += 1;
                self.text.push_str(line);
            } else {
                self.left_out += 1;
            }
        }
    }

    fn finish(mut self) -> String {
        if self.left_out > 0 {
            self.text.push_str(&omitted(self.left_out));
        }
        self.text
    }
}

/// The host of one test.
struct TestHost<'s> {
    session: &'s Session,
    notes: Mutex<Vec<Diagnostic>>,
    printed: Mutex<Output>,
    /// The diagnostics of the last launch that was refused: a fault has no room for all of them.
    refused: Mutex<Vec<Diagnostic>>,
}

impl TestHost<'_> {
    /// The diagnostics of a fault that ended the test.
    fn explain(&self, fault: &Fault, test: Span) -> Vec<Diagnostic> {
        let refused = std::mem::take(&mut *lock(&self.refused));
        let same = |d: &Diagnostic| d.code.0 == fault.code && d.message == fault.message;
        if !refused.first().is_some_and(same) {
            return vec![diagnostic(fault, test)];
        }
        let launch = fault.loc.map(|l| Span::new(FileId(l.file), l.start as usize, l.end as usize));
        let with_launch = |d: Diagnostic| match launch {
            Some(span) if span != d.primary.span => d.label(span, "launched here"),
            Some(_) | None => d,
        };
        refused.into_iter().map(|d| in_case(with_launch(d), fault)).collect()
    }

    fn try_launch(
        &self,
        kernel: &str,
        cargs: &str,
        args: Vec<Option<(Arg, ElemType)>>,
        memory: &Memory,
    ) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        let hir = &self.session.checked().hir;
        let Some(id) = contract::kernel_named(hir, kernel) else {
            let fault = Fault::new("E0001", format!("there is no kernel `{kernel}`"));
            return Err(vec![diagnostic(&fault, Span::default())]);
        };
        let args: Vec<Argument> = args.into_iter().map(argument).collect();
        self.session.launch(id, &args, &parse_cargs(cargs), memory)
    }
}

/// An argument as the launch contract sees it.
fn argument(arg: Option<(Arg, ElemType)>) -> Argument {
    let dtype = |elem: &ElemType| match elem {
        ElemType::Scalar(d) => *d,
        // The host holds pointers as integers of 64 bits.
        ElemType::Ptr { .. } => DType::I64,
    };
    let host = match &arg {
        None => HostArg::Absent,
        Some((Arg::Scalar(s), _)) => HostArg::Scalar(*s),
        Some((Arg::View { shape, strides, .. }, elem)) => {
            HostArg::Tensor { dtype: dtype(elem), shape: shape.clone(), strides: strides.clone() }
        }
        // A pointer that a test computed: nothing is known of what it points to.
        Some((Arg::Ptr { .. } | Arg::Null, elem)) => {
            HostArg::Tensor { dtype: dtype(elem), shape: vec![], strides: vec![] }
        }
    };
    let place = arg.map(|(arg, _)| arg).filter(|a| !matches!(a, Arg::Scalar(_)));
    Argument { host, place }
}

impl Host for TestHost<'_> {
    fn launch(
        &self,
        kernel: &str,
        cargs: &str,
        args: Vec<Option<(Arg, ElemType)>>,
        memory: &Memory,
    ) -> Result<(), Fault> {
        let outcome = self.try_launch(kernel, cargs, args, memory);
        lock(&self.printed).add(&self.session.printed());
        pass::enter("interpreter");
        match outcome {
            Ok(notes) => {
                lock(&self.notes).extend(notes);
                Ok(())
            }
            Err(wrong) => {
                let fault = match wrong.first() {
                    Some(d) => Fault::new(d.code.0, d.message.clone()),
                    None => Fault::new("E0001", "a launch failed without saying why"),
                };
                *lock(&self.refused) = wrong;
                Err(fault)
            }
        }
    }

    fn npy(&self, path: &str) -> Result<(DType, Vec<usize>, Vec<u8>), String> {
        let array = stored::read(self.session.folder(), path, DTypeSet::ANY)?;
        Ok((array.dtype, array.shape, array.bytes))
    }

    fn room(&self, bytes: usize) -> Result<(), String> {
        room::check(Some(bytes))
    }

    fn print(&self, text: &str) {
        let line = format!("{text}\n");
        self.session.echo(&line);
        lock(&self.printed).add(&line);
    }
}
