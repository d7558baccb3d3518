//! A stack machine; an unknown operation empties its stack, and there is no last value.
use std::io::Read;
#[derive(Debug)]
enum Token {
    Number(i64),
    Op(char),
    End,
}
struct Machine {
    stack: Vec<i64>,
    last: Option<Box<i64>>,
    name: String,
}
fn parse(text: &str) -> Vec<Token> {
    let mut out = Vec::new();
    for word in text.split_whitespace() {
        match word.parse::<i64>() {
            Ok(n) => out.push(Token::Number(n)),
            Err(_) => out.push(Token::Op(word.chars().next().unwrap())),
        }
    }
    out.push(Token::End);
    out
}
fn run(machine: &mut Machine, tokens: &[Token]) -> i64 {
    for token in tokens {
        match token {
            Token::Number(n) => machine.stack.push(*n),
            Token::Op('+') => {
                let a = machine.stack.pop().unwrap();
                let b = machine.stack.pop().unwrap();
                machine.stack.push(a + b);
            }
            Token::Op('/') => {
                let a = machine.stack.pop().unwrap();
                let b = machine.stack.pop().unwrap();
                machine.stack.push(b / a);
            }
            Token::Op(_) => machine.stack.clear(),
            Token::End => machine.last = machine.stack.last().map(|v| Box::new(*v)),
        }
    }
    machine.name.push('!');
    **machine.last.as_ref().expect("a value")
}
fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    let mut machine = Machine {
        stack: Vec::new(),
        last: None,
        name: "m".to_owned(),
    };
    let tokens = parse(&text);
    println!("{} {}", run(&mut machine, &tokens), machine.name);
}
