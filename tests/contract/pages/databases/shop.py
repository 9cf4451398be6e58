"""Makes app.db."""
import sqlite3

sqlite3.connect("app.db").executescript("""
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    CREATE TABLE orders (
        id INTEGER PRIMARY KEY,
        customer INTEGER NOT NULL REFERENCES customers,
        article TEXT NOT NULL,
        quantity INTEGER NOT NULL DEFAULT 1
    );
    INSERT INTO customers (name) VALUES ('ada'), ('bob');
    INSERT INTO orders (customer, article, quantity) VALUES (1, 'tea', 2), (1, 'cup', 1), (2, 'tea', 7);
""")
