// Nodes in a chain, and jobs that link or count them, each in a vector: `want` may be longer than
// the chain.
#include <cstdio>
#include <vector>
struct Node { int value; Node *next; Node *owner; };
struct Pool {
    std::vector<Node> nodes;
    Node *add(int value) {
        nodes.push_back(Node{value, nullptr, nullptr});
        return &nodes.back();
    }
};
struct Job {
    virtual void run(Pool &pool) = 0;
    virtual ~Job() {}
};
struct Link : Job {
    int from, to;
    Link(int from, int to) : from(from), to(to) {}
    void run(Pool &pool) override { pool.nodes[from].next = &pool.nodes[to]; }
};
struct Count : Job {
    int start, want;
    Count(int start, int want) : start(start), want(want) {}
    void run(Pool &pool) override {
        Node *node = &pool.nodes[start];
        for (int i = 0; i < want; i++)
            node = node->next;
        printf("%d\n", node->value);
    }
};
int main() {
    Pool pool;
    std::vector<Job *> jobs;
    char c;
    int a, b;
    while (scanf(" %c %d %d", &c, &a, &b) == 3) {
        if (c == 'n')
            pool.add(a);
        else if (c == 'l')
            jobs.push_back(new Link(a, b));
        else if (c == 'c')
            jobs.push_back(new Count(a, b));
    }
    for (Job *job : jobs)
        job->run(pool);
    return 0;
}
