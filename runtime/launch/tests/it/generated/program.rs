//! The text of a generated program as a tree of statements, and its shrinking.
//!
//! Guarantees that what is left of a program is the original with statements taken out, in their order.

/// A statement or item: `head`, then for each arm its statements and the line after them.
#[derive(Clone, Debug)]
pub struct Node {
    pub head: String,
    pub arms: Vec<(Vec<Node>, String)>,
}

impl Node {
    pub fn line(text: impl Into<String>) -> Node {
        Node { head: text.into(), arms: vec![] }
    }

    pub fn block(head: impl Into<String>, body: Vec<Node>, tail: impl Into<String>) -> Node {
        Node { head: head.into(), arms: vec![(body, tail.into())] }
    }
}

/// The source text.
pub fn text(nodes: &[Node]) -> String {
    let mut out = String::new();
    nodes.iter().for_each(|n| write(n, 0, &mut out));
    out
}

fn write(node: &Node, depth: usize, out: &mut String) {
    let indent = "    ".repeat(depth);
    *out += &format!("{indent}{}\n", node.head);
    for (body, tail) in &node.arms {
        body.iter().for_each(|n| write(n, depth + 1, out));
        *out += &format!("{indent}{tail}\n");
    }
}

fn count(nodes: &[Node]) -> usize {
    nodes.iter().map(|n| 1 + n.arms.iter().map(|(body, _)| count(body)).sum::<usize>()).sum()
}

/// Takes out the statement with this number, counted from the front, with what it holds.
fn without(nodes: &[Node], at: &mut usize) -> Vec<Node> {
    let mut out = vec![];
    for node in nodes {
        let here = *at == 0;
        *at = at.wrapping_sub(1);
        if here {
            // It is not counted on; no later statement has the number zero again.
            *at = usize::MAX;
            continue;
        }
        let arms = node.arms.iter().map(|(body, tail)| (without(body, at), tail.clone())).collect();
        out.push(Node { head: node.head.clone(), arms });
    }
    out
}

/// The smallest program that still `fails`, by taking out statements from the end as long as that helps.
pub fn shrink(mut program: Vec<Node>, fails: impl Fn(&str) -> bool) -> Vec<Node> {
    loop {
        let before = count(&program);
        let mut at = before;
        while at > 0 {
            at -= 1;
            let smaller = without(&program, &mut at.clone());
            if fails(&text(&smaller)) {
                at = at.min(count(&smaller));
                program = smaller;
            }
        }
        if count(&program) == before {
            return program;
        }
    }
}
