//! Parses a page of the specification into its fenced blocks with their positions.

/// A fenced block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The words after the opening fence.
    pub info: String,
    /// The contents, with a line break at the end of each line.
    pub text: String,
    /// The line of the page, from 1, on which the contents begin.
    pub line: usize,
}

/// The blocks of a page in order. A fence that is not closed reaches to the end of the page.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = vec![];
    let mut open: Option<(String, Block)> = None;
    for (i, line) in page.lines().enumerate() {
        let trimmed = line.trim_start();
        match &mut open {
            Some((fence, block)) => {
                if trimmed.trim_end() == fence.as_str() {
                    found.extend(open.take().map(|(_, block)| block));
                } else {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
            }
            None if trimmed.starts_with("```") => {
                let fence: String = trimmed.chars().take_while(|c| *c == '`').collect();
                let info = trimmed[fence.len()..].trim().to_string();
                let block = Block { info, text: String::new(), line: i + 2 };
                open = Some((fence, block));
            }
            None => {}
        }
    }
    found.extend(open.map(|(_, block)| block));
    found
}

/// The page with the contents of one block replaced.
pub fn with_block(page: &str, block: &Block, text: &str) -> String {
    let lines: Vec<&str> = page.lines().collect();
    let count = block.text.lines().count();
    let (before, rest) = lines.split_at(block.line - 1);
    let mut out: String = before.iter().map(|l| format!("{l}\n")).collect();
    out.push_str(text);
    out.extend(rest[count..].iter().map(|l| format!("{l}\n")));
    out
}

/// The fenced blocks of the doc comments of a `.tk` file, at their lines in the file.
pub fn doc_blocks(source: &str) -> Vec<Block> {
    let doc = |l: &str| {
        let l = l.trim_start();
        l.strip_prefix("///").map(|l| l.strip_prefix(' ').unwrap_or(l).to_string()).unwrap_or_default()
    };
    blocks(&source.lines().map(|l| doc(l) + "\n").collect::<String>())
}

#[test]
fn blocks_have_their_lines() {
    let page = "# A\n\n```tk fails\nx\ny\n```\n\ntext\n\n## B\n````text\n```\n````\n";
    let found = blocks(page);
    let first = Block { info: "tk fails".into(), text: "x\ny\n".into(), line: 4 };
    assert_eq!(found[0], first);
    assert_eq!((found[1].text.as_str(), found[1].line), ("```\n", 12));
    assert_eq!(with_block(page, &found[0], "z\n"), page.replace("x\ny\n", "z\n"));
    assert_eq!(doc_blocks("/// a\n/// ```tk\n///  b\n/// ```\nfn f()")[0].text, " b\n");
}
