//! `tk doc`: pages and data about modules.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use serde_json::Value;

use crate::support::command::Folder;

const SHAPES: &str = r#"// Pairs of numbers. They are small.
//
// Used by [`scale`] and [`other::twice`].

/// Two numbers, see [`sum_of`] and [`nothing`].
struct Pair[T: float] {
    /// The first of
    /// two.
    a: T,
    b: T,

    /// The larger one.
    fn larger(self: Pair[T]) -> T {
        maximum(self.a, self.b)
    }
}

/// The number of elements of a block.
const BLOCK: i32 = 32;
const _HIDDEN = 1;

/// Adds both numbers.
///
/// ```tk fragment
/// sum_of(p)
/// ```
fn sum_of(p: Pair[f32]) -> f32 {
    p.a + p.b
}

fn _hidden() -> i32 {
    1
}

/// Multiplies by 2.
@fast kernel scale(
    x: view[f32, 1],
    /// The result | of one length.
    y: mut view[f32, 1],
)
    grid(cdiv(x.shape[0], BLOCK))
    require(
        x.shape == y.shape,
    )
{
    let at = program_id(0) * BLOCK;
    y.store([at], x.load([at], [BLOCK]) * 2.0);
}

export scale;

test "a pair" {
    assert(Pair(a = 1.0, b = 2.0).larger() == 2.0);
}

test "scaled" {
    let y = buffer(zeros([2], f32));
    scale(buffer(full([2], 1.0, f32)), y);
    assert(all(y.tile() == 2.0));
}
"#;

/// The page of the module above, as people read it.
const PAGE: &str = r#"# `shapes`

Pairs of numbers. They are small.

Used by [`scale`](#scale) and [`other::twice`](other.md#twice).

## Kernels

### `scale`

```tk fragment
@fast kernel scale(
    x: view[f32, 1],
    /// The result | of one length.
    y: mut view[f32, 1],
)
    grid(cdiv(x.shape[0], BLOCK))
```

Multiplies by 2.

| parameter | |
|---|---|
| `y` | The result \| of one length. |

Conditions of a launch:

```tk fragment
require(
    x.shape == y.shape,
)
```

Exported:

```tk fragment
export scale;
```

A test:

```tk fragment
test "scaled" {
    let y = buffer(zeros([2], f32));
    scale(buffer(full([2], 1.0, f32)), y);
    assert(all(y.tile() == 2.0));
}
```

See also [`BLOCK`](#block).

## Functions

### `sum_of`

```tk fragment
fn sum_of(p: Pair[f32]) -> f32
```

Adds both numbers.

```tk fragment
sum_of(p)
```

See also [`Pair`](#pair).

## Structs

### `Pair`

```tk fragment
struct Pair[T: float] {
    a: T,
    b: T,
}
```

Two numbers, see [`sum_of`](#sum_of) and `nothing`.

| parameter | |
|---|---|
| `a` | The first of two. |

A test:

```tk fragment
test "a pair" {
    assert(Pair(a = 1.0, b = 2.0).larger() == 2.0);
}
```

#### `larger`

```tk fragment
fn larger(self: Pair[T]) -> T
```

The larger one.

A test:

```tk fragment
test "a pair" {
    assert(Pair(a = 1.0, b = 2.0).larger() == 2.0);
}
```

See also [`Pair`](#pair).

## Constants

### `BLOCK`

```tk fragment
const BLOCK: i32 = 32;
```

The number of elements of a block.
"#;

fn folder() -> Folder {
    let folder = Folder::new("doc");
    for name in ["lib", "more"] {
        std::fs::create_dir(folder.path(name)).unwrap();
    }
    folder.write("lib/shapes.tk", SHAPES);
    folder.write("lib/other.tk", "/// Doubles.\nfn twice(x: i32) -> i32 {\n    2 * x\n}\n");
    folder
}

#[test]
fn a_page_for_each_module() {
    let folder = folder();
    folder.tk(&["doc", "lib", "--out", "ref"]).code(0);
    let read = |name: &str| std::fs::read_to_string(folder.path("ref").join(name)).unwrap();
    assert_eq!(read("shapes.md"), PAGE);
    assert_eq!(
        read("README.md"),
        "# Modules\n\n- [`other`](other.md)\n- [`shapes`](shapes.md): Pairs of numbers.\n"
    );
    assert_eq!(std::fs::read_dir(folder.path("ref")).unwrap().count(), 3);
    // Without a folder it is printed.
    let printed = "# `other`\n\n## Functions\n\n### `twice`\n\n```tk fragment\nfn twice(x: i32) -> i32\n```\n\nDoubles.\n";
    assert_eq!(folder.tk(&["doc", "lib/other.tk"]).code(0).out, printed);
}

#[test]
fn the_reference_as_data() {
    let folder = folder();
    let ran = folder.tk(&["doc", "lib/shapes.tk", "--format", "json"]);
    let modules: Value = serde_json::from_str(&ran.code(0).out).unwrap();
    let items = modules[0]["items"].as_array().unwrap();
    let names: Vec<&str> = items.iter().map(|i| i["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Pair", "BLOCK", "sum_of", "scale"]);
    assert_eq!(items[0]["methods"][0]["kind"], "method");
    assert_eq!(items[3]["requirements"][0], "require(\n    x.shape == y.shape,\n)");
    assert_eq!((&items[3]["line"], &items[3]["kind"]), (&36.into(), &"kernel".into()));
    folder.tk(&["doc", "lib", "--format", "json", "--out", "data"]).code(0);
    let one = std::fs::read_to_string(folder.path("data/shapes.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&one).unwrap(), modules);
}

#[test]
fn the_standard_library() {
    let folder = folder();
    let ran = folder.tk(&["doc", "std::math"]);
    ran.code(0).out_has("# `std::math`").out_has("### `gelu_tanh`").out_has("[`gelu`](#gelu)");
    folder.tk(&["doc", "std", "--out", "std"]).code(0);
    let modules = tk_sema::std_files().count();
    assert_eq!(std::fs::read_dir(folder.path("std")).unwrap().count(), modules + 1);
    folder.tk(&["doc", "std::maths"]).code(2).says(&["no `std::maths`", "did you mean `std::math`?"]);
}

#[test]
fn what_has_no_reference() {
    let folder = folder();
    folder.write("wrong.tk", "fn f() -> i32 { x }\n");
    folder.write("more/shapes.tk", "fn f() -> i32 { 1 }\n");
    folder.write("empty.tk", "");
    folder.tk(&["doc", "wrong.tk", "--out", "ref"]).code(1).err_has("E0201");
    assert!(!folder.path("ref").exists());
    folder.tk(&["doc", "lib", "more", "--out", "ref"]).code(2).says(&["two files are named `shapes`"]);
    folder.tk(&["doc", "missing.tk"]).code(2);
    folder.tk(&["doc"]).code(2);
    folder.tk(&["doc", "empty.tk"]).code(0).out_has("This module has no public items.");
}
