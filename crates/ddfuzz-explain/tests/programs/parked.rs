//! Two records of one name, of which one contains the other: they differ by their field's type.

mod kept {
    pub struct Level {
        pub inner: u64,
    }
}

struct Level {
    inner: kept::Level,
}

#[inline(never)]
fn share(level: &Level, whole: u64) -> u64 {
    whole / level.inner.inner
}

fn main() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let count = line.trim().len() as u64;
    let level = Level {
        inner: kept::Level { inner: count - 1 },
    };
    println!("{}", share(&level, 100));
}
