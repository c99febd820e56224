import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

@Entity('customer_order')
export class Order {
  @PrimaryGeneratedColumn('uuid')
  id!: string;

  @Column('text')
  sku!: string;

  @Column('int')
  quantity!: number;
}
