//! Accounts: "open NAME", "in NAME AMOUNT", "out NAME AMOUNT". A withdrawal checks the amount without
//! its fee, so that a balance may become negative.
use std::collections::HashMap;
use std::io::BufRead;

struct Account {
    owner: String,
    balance: i64,
    changes: Vec<Change>,
}

enum Change {
    Deposit(i64),
    Withdraw { amount: i64, fee: i64 },
}

struct Bank {
    accounts: Vec<Account>,
    index: HashMap<String, usize>,
}

impl Bank {
    fn open(&mut self, owner: &str) {
        self.index.insert(owner.to_owned(), self.accounts.len());
        let (owner, changes) = (owner.to_owned(), Vec::new());
        self.accounts.push(Account { owner, balance: 0, changes });
    }

    fn deposit(&mut self, id: usize, amount: i64) {
        let account = &mut self.accounts[id];
        account.balance += amount;
        account.changes.push(Change::Deposit(amount));
    }

    fn withdraw(&mut self, id: usize, amount: i64) {
        let fee = if amount > 100 { 2 } else { 1 };
        let account = &mut self.accounts[id];
        if account.balance < amount {
            return;
        }
        account.balance -= amount + fee;
        account.changes.push(Change::Withdraw { amount, fee });
    }

    fn check(&self) {
        for account in &self.accounts {
            assert!(account.balance >= 0, "{} owes {}", account.owner, -account.balance);
        }
    }
}

fn main() {
    let mut bank = Bank { accounts: Vec::new(), index: HashMap::new() };
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["open", name] = words[..] {
            bank.open(name);
        } else if let [verb, name, amount] = words[..] {
            let (id, amount) = (bank.index[name], amount.parse().unwrap());
            match verb {
                "in" => bank.deposit(id, amount),
                _ => bank.withdraw(id, amount),
            }
        }
        bank.check();
    }
    println!("{}", bank.accounts.len());
}
