//! The combinations of the values of all axes.

use crate::error::StudyError;
use crate::model::{Axis, AxisSelection, Selector, StudyFile};

/// The product of the axes; the last varies fastest.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    pub(crate) lengths: Vec<usize>,
}

impl Space {
    pub(crate) fn of(file: &StudyFile) -> Self {
        Self { lengths: file.study.axis.iter().map(|a| a.values.len()).collect() }
    }
    pub(crate) fn len(&self) -> usize {
        self.lengths.iter().product()
    }
    pub(crate) fn unflatten(&self, mut flat: usize) -> Vec<usize> {
        let mut index = vec![0; self.lengths.len()];
        for (i, length) in self.lengths.iter().enumerate().rev() {
            index[i] = flat % length;
            flat /= length;
        }
        index
    }
    pub(crate) fn flatten(&self, index: &[usize]) -> usize {
        index.iter().zip(&self.lengths).fold(0, |flat, (i, length)| flat * length + i)
    }
}

/// The values of each axis that a selector picks; `None` if it does not mention the axis.
pub(crate) fn pins(
    file: &StudyFile,
    selector: &Selector,
    key: &str,
) -> Result<Vec<Option<Vec<usize>>>, StudyError> {
    let axes = &file.study.axis;
    let names: Vec<&str> = axes.iter().map(|a| a.name.as_str()).collect();
    if let Some(unknown) = selector.0.keys().find(|k| !names.contains(&k.as_str())) {
        return Err(file.refuse(key, format!("there is no axis `{unknown}`"), &names));
    }
    let find = |axis: &Axis, pick: &AxisSelection| -> Result<Vec<usize>, StudyError> {
        let one = |p: &String| {
            axis.index_of(p).ok_or_else(|| {
                let labels: Vec<String> = (0..axis.values.len()).map(|i| axis.label(i)).collect();
                let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
                file.refuse(key, format!("axis `{}` has no value `{p}`", axis.name), &labels)
            })
        };
        if pick.0.is_empty() {
            return Err(file.refuse(
                key,
                format!("the list of values of axis `{}` is empty", axis.name),
                &["at least one"],
            ));
        }
        pick.0.iter().map(one).collect()
    };
    axes.iter().map(|a| selector.0.get(&a.name).map(|p| find(a, p)).transpose()).collect()
}
